#include "plugin/c_api/module.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "passes/ir/parse.h"
#include "passes/ir/print.h"
#include "plugin/c_api/guard.h"
#include "plugin/c_api/types.h"

namespace pipeloom::c_api {
namespace {

absl::StatusOr<PipelineConfig> ReadConfig(const pipeloom_config* config) {
  RETURN_IF_ERROR(NotNull(config, "the config"));
  ASSIGN_OR_RETURN(const absl::string_view schedule, ReadString(config->schedule, "the schedule"));
  PipelineConfig read;
  read.stages = config->stages;
  read.micro_batches = config->micro_batches;
  read.schedule = std::string(schedule);
  read.threads = config->threads;
  read.chunks_per_rank = config->chunks_per_rank;
  read.deal_cells = config->deal_cells != 0;
  return read;
}

absl::Status AddGraph(pipeloom_module* module, const char* name, bool is_block, pipeloom_graph** graph) {
  RETURN_IF_ERROR(CheckModule(module));
  RETURN_IF_ERROR(NotNull(graph, "the place for the graph"));
  ASSIGN_OR_RETURN(const absl::string_view given, ReadString(name, "the name of a graph"));
  auto& graphs = is_block ? module->module.blocks : module->module.graphs;
  graphs.push_back(std::make_unique<Graph>(std::string(given)));
  const auto number = static_cast<int64_t>(module->graphs.size()) + 1;
  module->graphs.push_back(std::make_unique<pipeloom_graph>(pipeloom_graph{module, graphs.back().get(), number, {}}));
  *graph = module->graphs.back().get();
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckModule(const pipeloom_module* module) {
  RETURN_IF_ERROR(NotNull(module, "the module"));
  if (!module->compiled) return absl::OkStatus();
  return absl::FailedPreconditionError("the module was compiled, which took its graphs; make a new one");
}

}  // namespace pipeloom::c_api

using pipeloom::c_api::CheckModule;
using pipeloom::c_api::Guard;
using pipeloom::c_api::NotNull;
using pipeloom::c_api::ReadString;

extern "C" {

void pipeloom_config_init(pipeloom_config* config) {
  if (config == nullptr) return;
  static const pipeloom::PipelineConfig& defaults = *new pipeloom::PipelineConfig();
  *config = {defaults.stages,  defaults.micro_batches,   defaults.schedule.c_str(),
             defaults.threads, defaults.chunks_per_rank, defaults.deal_cells ? 1 : 0};
}

int pipeloom_module_create(const pipeloom_config* config, pipeloom_module** module) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(NotNull(module, "the place for the module"));
    auto made = std::make_unique<pipeloom_module>();
    ASSIGN_OR_RETURN(made->module.config, pipeloom::c_api::ReadConfig(config));
    *module = made.release();
    return absl::OkStatus();
  });
}

int pipeloom_module_parse(const char* text, pipeloom_module** module) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(NotNull(module, "the place for the module"));
    ASSIGN_OR_RETURN(const absl::string_view given, ReadString(text, "the text"));
    auto made = std::make_unique<pipeloom_module>();
    ASSIGN_OR_RETURN(made->module, pipeloom::Parse(given));
    *module = made.release();
    return absl::OkStatus();
  });
}

void pipeloom_module_destroy(pipeloom_module* module) { delete module; }

int pipeloom_module_text(pipeloom_module* module, const char** text) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(CheckModule(module));
    RETURN_IF_ERROR(NotNull(text, "the place for the text"));
    module->text = pipeloom::Print(module->module);
    *text = module->text.c_str();
    return absl::OkStatus();
  });
}

int pipeloom_module_set_stage(pipeloom_module* module, const char* cell, int stage) {
  return Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(CheckModule(module));
    ASSIGN_OR_RETURN(const absl::string_view path, ReadString(cell, "the path of a cell"));
    module->module.config.stage_of_cell.emplace_back(path, pipeloom::StageId(stage));
    return absl::OkStatus();
  });
}

int pipeloom_module_add_graph(pipeloom_module* module, const char* name, pipeloom_graph** graph) {
  return Guard([&] { return pipeloom::c_api::AddGraph(module, name, /*is_block=*/false, graph); });
}

int pipeloom_module_add_block(pipeloom_module* module, const char* name, pipeloom_graph** graph) {
  return Guard([&] { return pipeloom::c_api::AddGraph(module, name, /*is_block=*/true, graph); });
}

}  // extern "C"
