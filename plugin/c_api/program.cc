#include "plugin/c_api/program.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "plugin/c_api/guard.h"
#include "plugin/c_api/module.h"
#include "plugin/c_api/types.h"

pipeloom_program::pipeloom_program(pipeloom::CompiledProgram compiled)
    : program(std::move(compiled)),
      inputs(pipeloom::c_api::Borrow(program.inputs)),
      outputs(pipeloom::c_api::Borrow(program.outputs)) {
  for (const pipeloom::RankProgram& rank : program.ranks) {
    parameters.emplace_back();
    for (const pipeloom::ParameterRef& parameter : rank.parameters) {
      parameters.back().push_back(
          {parameter.name.c_str(), pipeloom::c_api::Borrow(parameter.type), parameter.written ? 1 : 0});
    }
  }
}

namespace pipeloom::c_api {
namespace {

absl::StatusOr<const std::vector<pipeloom_parameter>*> ParametersOf(const pipeloom_program* program, int rank) {
  RETURN_IF_ERROR(NotNull(program, "the program"));
  if (rank >= 0 && static_cast<size_t>(rank) < program->parameters.size()) {
    return &program->parameters[static_cast<size_t>(rank)];
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the program has no rank ", rank, "; give 0 to ", program->parameters.size() - 1));
}

absl::Status GiveTypes(const pipeloom_program* program, const std::vector<pipeloom_type> pipeloom_program::*which,
                       const pipeloom_type** types, size_t* count) {
  RETURN_IF_ERROR(NotNull(program, "the program"));
  RETURN_IF_ERROR(NotNull(types, "the place for the types"));
  RETURN_IF_ERROR(NotNull(count, "the place for their number"));
  *types = (program->*which).data();
  *count = (program->*which).size();
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipeloom::c_api

using pipeloom::c_api::GiveTypes;
using pipeloom::c_api::Guard;
using pipeloom::c_api::NotNull;
using pipeloom::c_api::ParametersOf;

extern "C" {

void pipeloom_compile_options_init(pipeloom_compile_options* options) {
  if (options != nullptr) *options = {};
}

int pipeloom_compile(pipeloom_module* module, const pipeloom_compile_options* options, pipeloom_program** program) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(pipeloom::c_api::CheckModule(module));
    RETURN_IF_ERROR(NotNull(program, "the place for the program"));
    pipeloom::CompileOptions read;
    if (options != nullptr && options->dump_dir != nullptr) read.dump_dir = options->dump_dir;
    module->compiled = true;
    ASSIGN_OR_RETURN(pipeloom::CompiledProgram compiled, pipeloom::Compile(std::move(module->module), read));
    *program = new pipeloom_program(std::move(compiled));
    return absl::OkStatus();
  });
}

void pipeloom_program_destroy(pipeloom_program* program) { delete program; }

int pipeloom_program_ranks(const pipeloom_program* program, int* ranks) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(NotNull(program, "the program"));
    RETURN_IF_ERROR(NotNull(ranks, "the place for the number of ranks"));
    *ranks = static_cast<int>(program->program.ranks.size());
    return absl::OkStatus();
  });
}

int pipeloom_program_inputs(const pipeloom_program* program, const pipeloom_type** types, size_t* count) {
  return Guard([&] { return GiveTypes(program, &pipeloom_program::inputs, types, count); });
}

int pipeloom_program_outputs(const pipeloom_program* program, const pipeloom_type** types, size_t* count) {
  return Guard([&] { return GiveTypes(program, &pipeloom_program::outputs, types, count); });
}

int pipeloom_program_parameters(const pipeloom_program* program, int rank, const pipeloom_parameter** parameters,
                                size_t* count) {
  return Guard([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const auto* of_rank, ParametersOf(program, rank));
    RETURN_IF_ERROR(NotNull(parameters, "the place for the parameters"));
    RETURN_IF_ERROR(NotNull(count, "the place for their number"));
    *parameters = of_rank->data();
    *count = of_rank->size();
    return absl::OkStatus();
  });
}

int pipeloom_program_find_parameter(const pipeloom_program* program, int rank, const char* name,
                                    const pipeloom_parameter** parameter) {
  return Guard([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const auto* of_rank, ParametersOf(program, rank));
    ASSIGN_OR_RETURN(const absl::string_view wanted, pipeloom::c_api::ReadString(name, "the name of a parameter"));
    RETURN_IF_ERROR(NotNull(parameter, "the place for the parameter"));
    *parameter = nullptr;
    for (const pipeloom_parameter& known : *of_rank) {
      if (wanted == known.name) *parameter = &known;
    }
    return absl::OkStatus();
  });
}

}  // extern "C"
