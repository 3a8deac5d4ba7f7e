#include "tests/runtime/train.h"

#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "kernels/base/elements.h"
#include "kernels/base/status_macros.h"
#include "passes/copy_parameter_nodes.h"
#include "passes/differentiate.h"
#include "passes/ir/parse.h"
#include "plugin/runtime/session.h"

namespace pipeloom {
namespace {

// Values of a tensor called `name`, the same for every layout.
std::vector<double> Draw(const std::string& name, const TensorType& type, int classes) {
  std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(name)));
  std::vector<double> values(static_cast<size_t>(type.num_elements()));
  std::uniform_real_distribution<float> real(-0.5f, 0.5f);
  for (double& value : values) {
    value = Info(type.dtype).floating ? real(random) : static_cast<double>(random() % static_cast<unsigned>(classes));
  }
  return values;
}

// States of optimizers begin with zeros.
bool IsState(const std::string& parameter) {
  for (const char* prefix : {"accum.", "moment1.", "moment2.", "step."}) {
    if (parameter.rfind(prefix, 0) == 0) return true;
  }
  return false;
}

Tensor ToTensor(const TensorType& type, const std::vector<double>& values) {
  Tensor tensor(type);
  StoreElements(values, tensor.view());
  return tensor;
}

// The elements of all outputs but the loss.
void AppendOthers(const std::vector<Tensor>& outputs, std::vector<float>& elements) {
  for (size_t i = 1; i < outputs.size(); ++i) {
    const float* first = outputs[i].data<float>();
    elements.insert(elements.end(), first, first + outputs[i].type().num_elements());
  }
}

Module Instantiate(const Network& network, int rows, const std::string& reduce) {
  absl::StatusOr<Module> module =
      Parse(absl::StrReplaceAll(network.text, {{"{rows}", absl::StrCat(rows)}, {"{reduce}", reduce}}));
  PIPELOOM_CHECK(module.ok(), module.status().message());
  return *std::move(module);
}

}  // namespace

Module BuildModule(const Network& network, int batch, const Layout& layout) {
  PIPELOOM_CHECK(batch % layout.micro_batches == 0, batch, " rows in ", layout.micro_batches, " micro-batches");
  Module module = Instantiate(network, batch / layout.micro_batches, "mean");
  module.config.stages = layout.stages;
  module.config.schedule = layout.schedule;
  module.config.micro_batches = layout.micro_batches;
  const int cells = static_cast<int>(network.cells.size());
  for (int i = 0; i < cells; ++i) {
    const auto at = static_cast<size_t>(i);
    const int spread = layout.schedule == "interleaved" ? i % layout.stages : i * layout.stages / cells;
    const int stage = layout.stage_of_cell.empty() ? spread : layout.stage_of_cell[at];
    module.config.stage_of_cell.push_back({network.cells[at], StageId(stage)});
  }
  if (!layout.outlined) {
    // A node that already has a stage is taken as it is.
    PIPELOOM_CHECK(layout.stages == 1, "one stage, not ", layout.stages);
    for (const auto& node : module.graphs[0]->nodes()) node->info.stage = StageId(0);
  }
  return module;
}

absl::StatusOr<Trained> TrainPipelined(const Network& network, int batch, int steps, int classes,
                                       const Layout& layout) {
  Module module = BuildModule(network, batch, layout);
  std::vector<std::string> input_names;
  for (const Value* input : module.graphs[0]->inputs()) input_names.push_back(input->name);
  std::map<std::string, TensorType> parameters;
  for (const Value* parameter : module.graphs[0]->parameters()) {
    parameters[parameter->parameter] = parameter->type;
  }
  ASSIGN_OR_RETURN(const CompiledProgram program, Compile(std::move(module), {}));
  SessionOptions options;
  options.deadline = std::chrono::seconds(60);
  ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(layout.stages, options));
  ASSIGN_OR_RETURN(const int number, session->Load(program));
  for (const auto& [name, type] : parameters) {
    Tensor value = ToTensor(type, Draw(name, type, classes));
    RETURN_IF_ERROR(session->WriteParameter(name, value.view()));
  }
  Trained trained;
  for (int step = 0; step < steps; ++step) {
    std::vector<Tensor> inputs;
    std::vector<TensorView> views;
    for (size_t i = 0; i < input_names.size(); ++i) {
      const TensorType& type = program.inputs[i];
      inputs.push_back(ToTensor(type, Draw(absl::StrCat(input_names[i], step), type, classes)));
    }
    for (Tensor& input : inputs) views.push_back(input.view());
    std::vector<Tensor> outputs;
    std::vector<TensorView> output_views;
    for (const TensorType& type : program.outputs) outputs.emplace_back(type);
    for (Tensor& output : outputs) output_views.push_back(output.view());
    RETURN_IF_ERROR(session->Run(number, views, output_views));
    trained.losses.push_back(outputs[0].data<float>()[0]);
    if (step + 1 == steps) AppendOthers(outputs, trained.outputs);
  }
  for (const std::string& name : network.parameters) {
    ASSIGN_OR_RETURN(const Tensor value, session->ReadParameter(name));
    trained.parameters[name].assign(value.data<float>(), value.data<float>() + value.type().num_elements());
  }
  return trained;
}

Trained TrainReference(const Network& network, int batch, int steps, int classes) {
  Module module = Instantiate(network, batch, "mean");
  for (const Pass* pass : std::initializer_list<const Pass*>{new CopyParameterNodes, new Differentiate}) {
    const absl::StatusOr<bool> changed = pass->Run(module);
    PIPELOOM_CHECK(changed.ok(), changed.status().message());
    delete pass;
  }
  const Graph& graph = *module.graphs[0];
  RefValues parameters;
  for (const Value* parameter : graph.parameters()) {
    const TensorType& type = parameter->type;
    std::vector<double> values(static_cast<size_t>(type.num_elements()), 0.0);
    if (!IsState(parameter->parameter)) values = Draw(parameter->parameter, type, classes);
    parameters[parameter->parameter] = {type, std::move(values)};
  }
  Trained trained;
  for (int step = 0; step < steps; ++step) {
    RefValues inputs;
    for (const Value* input : graph.inputs()) {
      inputs[input->name] = {input->type, Draw(absl::StrCat(input->name, step), input->type, classes)};
    }
    const RefValues values = RunReferenceGraph(graph, inputs, parameters);
    trained.losses.push_back(static_cast<float>(values.at(graph.outputs[0].value->name).values[0]));
    for (size_t i = 1; i < graph.outputs.size() && step + 1 == steps; ++i) {
      const std::vector<double>& elements = values.at(graph.outputs[i].value->name).values;
      trained.outputs.insert(trained.outputs.end(), elements.begin(), elements.end());
    }
    for (const Value* parameter : graph.parameters()) parameters[parameter->parameter] = values.at(parameter->name);
  }
  for (const std::string& name : network.parameters) {
    const std::vector<double>& values = parameters.at(name).values;
    trained.parameters[name].assign(values.begin(), values.end());
  }
  return trained;
}

}  // namespace pipeloom
