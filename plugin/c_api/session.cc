#include "plugin/runtime/session.h"

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "plugin/c_api/guard.h"
#include "plugin/c_api/host_ops.h"
#include "plugin/c_api/pipeloom.h"
#include "plugin/c_api/program.h"
#include "plugin/c_api/types.h"
#include "plugin/c_api/world.h"

// NOLINTNEXTLINE(readability-identifier-naming): a name of C.
struct pipeloom_session {
  struct Outputs {
    std::vector<pipeloom::TensorType> types;
    std::vector<pipeloom_type> borrowed;  // from `types`
  };
  std::unique_ptr<pipeloom::Session> session;
  std::vector<Outputs> outputs;  // by loaded program
  // Of the step that runs; kept, so that a step allocates nothing.
  std::vector<pipeloom::TensorView> step_inputs;
  std::vector<pipeloom::TensorView> step_outputs;
};

namespace pipeloom::c_api {
namespace {

absl::StatusOr<SessionOptions> ReadOptions(const pipeloom_session_options* given) {
  SessionOptions options;
  if (given == nullptr) return options;
  options.deadline = std::chrono::milliseconds(given->deadline_ms);
  options.output_broadcast = given->output_broadcast != 0;
  RETURN_IF_ERROR(ArrayNotNull(given->configuration, given->num_configuration, "the configuration"));
  if (given->num_configuration % 2 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the configuration has ", given->num_configuration, " strings; give a value after each name"));
  }
  for (size_t i = 0; i < given->num_configuration; i += 2) {
    ASSIGN_OR_RETURN(const absl::string_view name, ReadString(given->configuration[i], "a name of the configuration"));
    ASSIGN_OR_RETURN(const absl::string_view value,
                     ReadString(given->configuration[i + 1], absl::StrCat("the value of ", name)));
    options.configuration.emplace_back(name, value);
  }
  ASSIGN_OR_RETURN(options.host_kernels, HostKernels(given->host_ops));
  return options;
}

absl::Status CheckLoaded(const pipeloom_session* session, int loaded) {
  RETURN_IF_ERROR(NotNull(session, "the session"));
  if (loaded >= 0 && static_cast<size_t>(loaded) < session->outputs.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("program ", loaded, " was never loaded; this session has ", session->outputs.size()));
}

// `what` is "input" or "output".
absl::Status ReadTensors(const pipeloom_tensor* tensors, size_t count, absl::string_view what,
                         std::vector<TensorView>* views) {
  RETURN_IF_ERROR(ArrayNotNull(tensors, count, what));
  views->resize(count);
  for (size_t i = 0; i < count; ++i) {
    const absl::Status read = ReadTensor(tensors[i], &(*views)[i]);
    if (!read.ok()) return Annotate(read, absl::StrCat(what, " ", i));
  }
  return absl::OkStatus();
}

struct NamedTensor {
  std::string name;
  TensorView view;
};

absl::StatusOr<NamedTensor> ReadParameterArguments(const pipeloom_session* session, const char* name,
                                                   const pipeloom_tensor* value) {
  RETURN_IF_ERROR(NotNull(session, "the session"));
  NamedTensor read;
  ASSIGN_OR_RETURN(const absl::string_view given, ReadString(name, "the name of a parameter"));
  read.name = std::string(given);
  RETURN_IF_ERROR(NotNull(value, absl::StrCat("the tensor for parameter ", given)));
  const absl::Status status = ReadTensor(*value, &read.view);
  if (!status.ok()) return Annotate(status, absl::StrCat("parameter ", given));
  return read;
}

absl::Status CopyTo(const TensorView& to, Tensor read, absl::string_view name) {
  if (to.type != read.type()) {
    return absl::InvalidArgumentError(absl::StrCat("parameter ", name, " is ", read.type().ToString(),
                                                   "; the tensor to read it into is ", to.type.ToString()));
  }
  const auto bytes = static_cast<size_t>(to.type.bytes());
  if (bytes == 0) return absl::OkStatus();
  RETURN_IF_ERROR(NotNull(to.data, absl::StrCat("the place for parameter ", name)));
  std::memcpy(to.data, read.data<char>(), bytes);
  return absl::OkStatus();
}

absl::Status Keep(absl::StatusOr<std::unique_ptr<Session>> made, pipeloom_session** session) {
  RETURN_IF_ERROR(made.status());
  auto kept = std::make_unique<pipeloom_session>();
  kept->session = *std::move(made);
  *session = kept.release();
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipeloom::c_api

using pipeloom::c_api::CheckLoaded;
using pipeloom::c_api::Guard;
using pipeloom::c_api::NamedTensor;
using pipeloom::c_api::NotNull;
using pipeloom::c_api::ReadOptions;
using pipeloom::c_api::ReadParameterArguments;
using pipeloom::c_api::ReadTensors;

extern "C" {

void pipeloom_session_options_init(pipeloom_session_options* options) {
  if (options == nullptr) return;
  const pipeloom::SessionOptions defaults;
  *options = {};
  options->deadline_ms = defaults.deadline.count();
  options->output_broadcast = defaults.output_broadcast ? 1 : 0;
}

int pipeloom_session_create(int ranks, const pipeloom_session_options* options, pipeloom_session** session) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(NotNull(session, "the place for the session"));
    ASSIGN_OR_RETURN(const pipeloom::SessionOptions read, ReadOptions(options));
    return pipeloom::c_api::Keep(pipeloom::Session::Create(ranks, read), session);
  });
}

int pipeloom_session_create_for_rank(pipeloom_world* world, const pipeloom_session_options* options,
                                     pipeloom_session** session) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(NotNull(world, "the world"));
    RETURN_IF_ERROR(NotNull(session, "the place for the session"));
    ASSIGN_OR_RETURN(const pipeloom::SessionOptions read, ReadOptions(options));
    if (world->world.transport == nullptr) {
      return absl::FailedPreconditionError(world->world.has_processes
                                               ? "the world has had its session"
                                               : "no launcher started ranks; make a session of threads");
    }
    return pipeloom::c_api::Keep(pipeloom::Session::CreateForRank(std::move(world->world.transport), read), session);
  });
}

void pipeloom_session_destroy(pipeloom_session* session) { delete session; }

int pipeloom_session_rank(const pipeloom_session* session, int* rank) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(NotNull(session, "the session"));
    RETURN_IF_ERROR(NotNull(rank, "the place for the rank"));
    *rank = session->session->rank().value();
    return absl::OkStatus();
  });
}

int pipeloom_session_ranks(const pipeloom_session* session, int* ranks) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(NotNull(session, "the session"));
    RETURN_IF_ERROR(NotNull(ranks, "the place for the number of ranks"));
    *ranks = session->session->ranks();
    return absl::OkStatus();
  });
}

int pipeloom_session_load(pipeloom_session* session, const pipeloom_program* program, int* loaded) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(NotNull(session, "the session"));
    RETURN_IF_ERROR(NotNull(program, "the program"));
    RETURN_IF_ERROR(NotNull(loaded, "the place for the program's number"));
    ASSIGN_OR_RETURN(const int number, session->session->Load(program->program));
    session->outputs.emplace_back();
    pipeloom_session::Outputs& outputs = session->outputs.back();
    outputs.types = session->session->OutputTypes(number);
    outputs.borrowed = pipeloom::c_api::Borrow(outputs.types);
    *loaded = number;
    return absl::OkStatus();
  });
}

int pipeloom_session_outputs(const pipeloom_session* session, int loaded, const pipeloom_type** types, size_t* count) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(CheckLoaded(session, loaded));
    RETURN_IF_ERROR(NotNull(types, "the place for the types"));
    RETURN_IF_ERROR(NotNull(count, "the place for their number"));
    const auto& borrowed = session->outputs[static_cast<size_t>(loaded)].borrowed;
    *types = borrowed.data();
    *count = borrowed.size();
    return absl::OkStatus();
  });
}

int pipeloom_session_run(pipeloom_session* session, int loaded, const pipeloom_tensor* inputs, size_t num_inputs,
                         const pipeloom_tensor* outputs, size_t num_outputs) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(CheckLoaded(session, loaded));
    RETURN_IF_ERROR(ReadTensors(inputs, num_inputs, "input", &session->step_inputs));
    RETURN_IF_ERROR(ReadTensors(outputs, num_outputs, "output", &session->step_outputs));
    return session->session->Run(loaded, session->step_inputs, session->step_outputs);
  });
}

int pipeloom_session_read_parameter(pipeloom_session* session, const char* name, const pipeloom_tensor* value) {
  return Guard([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const NamedTensor to, ReadParameterArguments(session, name, value));
    ASSIGN_OR_RETURN(pipeloom::Tensor read, session->session->ReadParameter(to.name));
    return pipeloom::c_api::CopyTo(to.view, std::move(read), to.name);
  });
}

int pipeloom_session_write_parameter(pipeloom_session* session, const char* name, const pipeloom_tensor* value) {
  return Guard([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const NamedTensor from, ReadParameterArguments(session, name, value));
    return session->session->WriteParameter(from.name, from.view);
  });
}

int pipeloom_session_bind_parameter(pipeloom_session* session, int rank, const char* name,
                                    const pipeloom_tensor* value) {
  return Guard([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const NamedTensor to, ReadParameterArguments(session, name, value));
    return session->session->BindParameter(pipeloom::RankId(rank), to.name, to.view);
  });
}

int pipeloom_session_refuse(pipeloom_session* session, int code, const char* text) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(NotNull(session, "the session"));
    ASSIGN_OR_RETURN(const absl::string_view why, pipeloom::c_api::ReadString(text, "the text of the error"));
    return session->session->Refuse(pipeloom::c_api::WithCode(code, why));
  });
}

int pipeloom_session_fail(pipeloom_session* session, int code, const char* text) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(NotNull(session, "the session"));
    ASSIGN_OR_RETURN(const absl::string_view why, pipeloom::c_api::ReadString(text, "the text of the error"));
    session->session->Abandon(pipeloom::c_api::WithCode(code, why));
    return absl::OkStatus();
  });
}

}  // extern "C"
