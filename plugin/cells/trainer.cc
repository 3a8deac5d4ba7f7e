#include "plugin/cells/trainer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/file_io.h"
#include "kernels/base/nearest_names.h"
#include "kernels/base/status_macros.h"
#include "passes/schedule/schedule_table.h"

namespace pipeloom {
namespace {

std::vector<TensorType> TypesOf(absl::Span<const TensorView> views) {
  std::vector<TensorType> types;
  types.reserve(views.size());
  for (const TensorView& view : views) types.push_back(view.type);
  return types;
}

std::vector<Tensor> NewTensors(const std::vector<TensorType>& types) {
  std::vector<Tensor> tensors;
  tensors.reserve(types.size());
  for (const TensorType& type : types) tensors.emplace_back(type);
  return tensors;
}

std::vector<TensorView> ViewsOf(std::vector<Tensor>& tensors) {
  std::vector<TensorView> views;
  views.reserve(tensors.size());
  for (Tensor& tensor : tensors) views.push_back(tensor.view());
  return views;
}

// In the metadata of a checkpoint.
constexpr char kSteps[] = "steps";

// Those of a checkpoint; `otherwise` where it does not say, as those of other programs.
absl::StatusOr<int64_t> StepsOf(const Metadata& metadata, int64_t otherwise) {
  const auto steps = metadata.find(kSteps);
  int64_t number = 0;
  if (steps == metadata.end()) return otherwise;
  if (absl::SimpleAtoi(steps->second, &number) && number >= 0) return number;
  return absl::InvalidArgumentError(
      absl::StrCat("its metadata says ", kSteps, "='", steps->second, "', which is no number from 0 on"));
}

std::vector<std::string> ParameterNames(const CellTree& tree) {
  std::vector<std::string> names;
  for (const CellTree::NamedParameter& named : tree.parameters()) names.push_back(named.name);
  return names;
}

absl::StatusOr<CellTree> CheckedTree(const Pipeline& pipeline, const std::optional<Optimizer>& optimizer,
                                     const TrainerOptions& options) {
  RETURN_IF_ERROR(FindSchedule(options.schedule).status());  // predicting has its own, and would not see a wrong name
  if (pipeline.net_with_loss == nullptr) return absl::InvalidArgumentError("the pipeline has no network; give it one");
  ASSIGN_OR_RETURN(CellTree tree, CellTree::Of(*pipeline.net_with_loss));
  RETURN_IF_ERROR(StagesOfCells(tree, pipeline.stage_config).status());
  if (optimizer.has_value()) RETURN_IF_ERROR(optimizer->Validate());
  return tree;
}

SessionOptions OptionsOfSession(const Pipeline& pipeline, const TrainerOptions& options) {
  SessionOptions session;
  session.deadline = options.deadline;
  session.output_broadcast = options.output_broadcast;
  session.configuration = {{"stages", absl::StrCat(options.stages)},
                           {"micro_batches", absl::StrCat(pipeline.micro_size)},
                           {"schedule", options.schedule},
                           {"threads", absl::StrCat(options.threads)},
                           {"loss_reduction", pipeline.loss_reduction},
                           {"output_broadcast", options.output_broadcast ? "true" : "false"}};
  session.configuration.insert(session.configuration.end(), options.configuration.begin(), options.configuration.end());
  return session;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(Pipeline pipeline, Optimizer optimizer,
                                                         const TrainerOptions& options,
                                                         std::unique_ptr<Transport> transport) {
  return Start(std::move(pipeline), std::move(optimizer), options, std::move(transport));
}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(const PipelineCellInference& pipeline,
                                                         const TrainerOptions& options,
                                                         std::unique_ptr<Transport> transport) {
  return Start(Pipeline(pipeline.network, pipeline.micro_batch_num, pipeline.stage_config), std::nullopt, options,
               std::move(transport));
}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Start(Pipeline pipeline, std::optional<Optimizer> optimizer,
                                                        const TrainerOptions& options,
                                                        std::unique_ptr<Transport> transport) {
  absl::StatusOr<CellTree> tree = CheckedTree(pipeline, optimizer, options);
  if (!tree.ok()) {
    if (transport != nullptr) transport->Fail(tree.status());
    return tree.status();
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                   transport == nullptr
                       ? Session::Create(options.stages, OptionsOfSession(pipeline, options))
                       : Session::CreateForRank(std::move(transport), OptionsOfSession(pipeline, options)));
  if (session->ranks() != options.stages) {
    return absl::InvalidArgumentError(absl::StrCat("the pipeline has ", options.stages, " stages, but ",
                                                   session->ranks(), " processes were started; start one a stage"));
  }
  return std::unique_ptr<Trainer>(
      new Trainer(std::move(pipeline), std::move(optimizer), options, *std::move(tree), std::move(session)));
}

Trainer::Trainer(Pipeline pipeline, std::optional<Optimizer> optimizer, TrainerOptions options, CellTree tree,
                 std::unique_ptr<Session> session)
    : pipeline_(std::move(pipeline)),
      optimizer_(std::move(optimizer)),
      options_(std::move(options)),
      tree_(std::move(tree)),
      session_(std::move(session)) {
  for (const CellTree::NamedParameter& named : tree_.parameters()) {
    not_used_yet_.emplace(named.name, named.parameter->InitialValue(named.name));
  }
}

PipelineConfig Trainer::Config() const {
  PipelineConfig config;
  config.stages = options_.stages;
  config.schedule = options_.schedule;
  config.threads = options_.threads;
  // Where the user gives no stages. All programs keep to what the first one chose: a parameter is updated where
  // training has it, and a dropout, which prediction does not have, must not shift the cells.
  config.stage_of_cell = dealt_;
  const absl::StatusOr<const ScheduleInfo*> schedule = FindSchedule(options_.schedule);
  config.deal_cells = !optimizer_.has_value() || (schedule.ok() && TakesSeveralChunks(**schedule));
  return config;
}

absl::Status Trainer::CompileStep(absl::Span<const TensorView> inputs) { return LoadStep(inputs).status(); }

absl::Status Trainer::CompilePredict(absl::Span<const TensorView> inputs) { return LoadPredict(inputs).status(); }

const Trainer::Loaded* Trainer::Find(const Programs& programs, absl::Span<const TensorView> inputs) {
  for (const Loaded& loaded : programs) {
    if (std::equal(inputs.begin(), inputs.end(), loaded.inputs.begin(), loaded.inputs.end(),
                   [](const TensorView& view, const TensorType& type) { return view.type == type; })) {
      return &loaded;
    }
  }
  return nullptr;
}

absl::StatusOr<Module> Trainer::TrainingModule(absl::Span<const TensorView> inputs) const {
  if (!optimizer_.has_value()) {
    return absl::FailedPreconditionError(
        "a PipelineCellInference only predicts; to train, give Create a Pipeline with a loss, and an optimizer");
  }
  return BuildTrainingModule(pipeline_, tree_, *optimizer_, TypesOf(inputs), Config());
}

absl::StatusOr<const Trainer::Loaded*> Trainer::LoadStep(absl::Span<const TensorView> inputs) {
  if (const Loaded* loaded = Find(step_programs_, inputs); loaded != nullptr) return loaded;
  return Load(TrainingModule(inputs), step_programs_);
}

absl::StatusOr<const Trainer::Loaded*> Trainer::LoadStepWithGradients(absl::Span<const TensorView> inputs) {
  if (const Loaded* loaded = Find(gradient_programs_, inputs); loaded != nullptr) return loaded;
  ASSIGN_OR_RETURN(Module module, TrainingModule(inputs));
  Graph& graph = *module.graphs[0];
  for (Value* parameter : graph.parameters()) {
    if (parameter->trainable) graph.outputs.push_back({parameter, std::string(kGradientOutput)});
  }
  return Load(std::move(module), gradient_programs_);
}

absl::StatusOr<const Trainer::Loaded*> Trainer::LoadPredict(absl::Span<const TensorView> inputs) {
  if (const Loaded* loaded = Find(predict_programs_, inputs); loaded != nullptr) return loaded;
  if (optimizer_.has_value()) {
    return Load(BuildInferenceModule(pipeline_, tree_, TypesOf(inputs), Config()), predict_programs_);
  }
  const PipelineCellInference inference(pipeline_.net_with_loss, pipeline_.micro_size, pipeline_.stage_config);
  return Load(BuildInferenceModule(inference, tree_, TypesOf(inputs), Config()), predict_programs_);
}

absl::StatusOr<const Trainer::Loaded*> Trainer::Load(absl::StatusOr<Module> module, Programs& programs) {
  if (!module.ok()) return session_->Refuse(module.status());
  const bool takes_step = !module->graphs[0]->inputs().back()->batch_axis.has_value();
  std::vector<std::string> parameters;
  for (const Value* parameter : module->graphs[0]->parameters()) parameters.push_back(parameter->parameter);
  std::vector<std::string> gradients;
  for (const Output& output : module->graphs[0]->outputs) {
    if (output.reduce == kGradientOutput) gradients.push_back(output.value->parameter);
  }
  const bool reports = session_->rank() == RankId(0);
  if (reports) WarnOfPrints(*module);
  CompileOptions compile_options;
  if (reports && !options_.dump_dir.empty()) {
    const char* kind = &programs == &step_programs_       ? "/step_"
                       : &programs == &gradient_programs_ ? "/step_with_gradients_"
                                                          : "/predict_";
    compile_options.dump_dir = absl::StrCat(options_.dump_dir, kind, programs.size());
  }
  const absl::StatusOr<CompiledProgram> compiled = Compile(*std::move(module), compile_options);
  if (!compiled.ok()) return session_->Refuse(compiled.status());
  const CompiledProgram& program = *compiled;
  dealt_ = program.stage_of_cell;
  const bool print_table = reports && programs.empty() && (&programs == &step_programs_ || !optimizer_.has_value()) &&
                           options_.table != nullptr;
  if (print_table) {
    *options_.table << StageTable(program.stages);
    if (!program.untrained.empty()) {
      *options_.table << "not trained, since the loss does not depend on them: "
                      << absl::StrJoin(program.untrained, ", ") << "\n";
    }
    options_.table->flush();
  }

  ASSIGN_OR_RETURN(const int number, session_->Load(program));
  for (const std::string& name : parameters) {
    const auto initial = not_used_yet_.find(name);
    if (initial == not_used_yet_.end()) continue;
    RETURN_IF_ERROR(session_->WriteParameter(name, initial->second.view()));
    not_used_yet_.erase(initial);
  }
  std::vector<TensorType> inputs = program.inputs;
  if (takes_step) inputs.pop_back();
  return &programs.emplace_back(
      Loaded{std::move(inputs), session_->OutputTypes(number), number, takes_step, std::move(gradients)});
}

void Trainer::WarnOfPrints(const Module& module) {
  for (const std::string& cell : PrintsWithoutStage(module)) {
    if (std::find(warned_of_.begin(), warned_of_.end(), cell) != warned_of_.end()) continue;
    std::cerr << "warning: cell '" << cell << "' prints but has no stage; it prints on the stage of what it prints. "
              << "Give it one in stage_config or by SetPipelineStage.\n";
    warned_of_.push_back(cell);
  }
}

absl::StatusOr<Tensor> Trainer::ReadParameter(const std::string& name) const {
  auto it = not_used_yet_.find(name);
  if (it == not_used_yet_.end()) return session_->ReadParameter(name);
  Tensor copy(it->second.type());
  std::copy_n(it->second.data<char>(), copy.type().bytes(), copy.data<char>());
  return copy;
}

absl::StatusOr<float> Trainer::Step(absl::Span<const TensorView> inputs) {
  ASSIGN_OR_RETURN(const Loaded* loaded, LoadStep(inputs));
  float loss = 0.0f;
  RETURN_IF_ERROR(RunStep(*loaded, inputs, {TensorView{&loss, loaded->outputs[0]}}));
  return loss;
}

absl::StatusOr<float> Trainer::StepWithGradients(absl::Span<const TensorView> inputs, TensorMap* gradients) {
  ASSIGN_OR_RETURN(const Loaded* loaded, LoadStepWithGradients(inputs));
  std::vector<Tensor> outputs = NewTensors(loaded->outputs);
  RETURN_IF_ERROR(RunStep(*loaded, inputs, ViewsOf(outputs)));
  gradients->clear();
  const size_t others = outputs.size() - loaded->gradients.size();
  for (size_t i = 0; i < loaded->gradients.size(); ++i) {
    gradients->emplace(loaded->gradients[i], std::move(outputs[others + i]));
  }
  return outputs[0].data<float>()[0];
}

absl::Status Trainer::RunStep(const Loaded& loaded, absl::Span<const TensorView> inputs,
                              absl::Span<const TensorView> outputs) {
  if (loaded.takes_step) {
    inputs_and_step_.assign(inputs.begin(), inputs.end());
    inputs_and_step_.push_back({&steps_, TensorType{DType::kInt64, {}}});
    inputs = inputs_and_step_;
  }
  RETURN_IF_ERROR(session_->Run(loaded.number, inputs, outputs));
  ++steps_;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> Trainer::Predict(absl::Span<const TensorView> inputs) {
  ASSIGN_OR_RETURN(const Loaded* loaded, LoadPredict(inputs));
  std::vector<Tensor> outputs = NewTensors(loaded->outputs);
  RETURN_IF_ERROR(session_->Run(loaded->number, inputs, ViewsOf(outputs)));
  return outputs;
}

absl::StatusOr<TensorMap> Trainer::ReadParameters() const {
  TensorMap values;
  for (const CellTree::NamedParameter& named : tree_.parameters()) {
    ASSIGN_OR_RETURN(Tensor value, ReadParameter(named.name));
    values.emplace(named.name, std::move(value));
  }
  return values;
}

absl::Status Trainer::WriteParameters(TensorMap values) {
  for (const auto& [name, value] : values) {
    const CellTree::NamedParameter* named = tree_.FindParameter(name);
    if (named == nullptr) {
      const std::vector<std::string> nearest = NearestFirst(name, ParameterNames(tree_));
      return absl::InvalidArgumentError(absl::StrCat("the network has no parameter '", name, "'; the nearest is '",
                                                     nearest.empty() ? "" : nearest.front(), "'"));
    }
    const TensorType type{DType::kFloat32, named->parameter->shape()};
    if (value.type() != type) {
      return absl::InvalidArgumentError(absl::StrCat("parameter '", name, "' is ", type.ToString(),
                                                     ", but its new value is ", value.type().ToString()));
    }
  }
  for (const CellTree::NamedParameter& named : tree_.parameters()) {
    if (values.count(named.name) == 0) {
      return absl::InvalidArgumentError(absl::StrCat("there is no value for parameter '", named.name, "'"));
    }
  }
  for (const CellTree::NamedParameter& named : tree_.parameters()) {
    Tensor& value = values.at(named.name);
    if (auto it = not_used_yet_.find(named.name); it != not_used_yet_.end()) {
      it->second = std::move(value);
    } else {
      RETURN_IF_ERROR(session_->WriteParameter(named.name, value.view()));
    }
  }
  return absl::OkStatus();
}

absl::Status Trainer::SaveCheckpoint(const std::string& path) const {
  ASSIGN_OR_RETURN(const TensorMap values, ReadParameters());
  return session_
      ->OnRankZero(absl::StrCat("writing ", path),
                   [&]() -> absl::StatusOr<std::string> {
                     RETURN_IF_ERROR(WriteSafetensors(path, values, {{kSteps, absl::StrCat(steps_)}}));
                     return "";
                   })
      .status();
}

absl::Status Trainer::LoadCheckpoint(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes,
                   session_->OnRankZero(absl::StrCat("reading ", path), [&] { return ReadFile(path); }));
  const auto take = [&]() -> absl::Status {
    Metadata metadata;
    ASSIGN_OR_RETURN(TensorMap values, ParseSafetensors(bytes, &metadata));
    ASSIGN_OR_RETURN(const int64_t steps, StepsOf(metadata, steps_));
    RETURN_IF_ERROR(WriteParameters(std::move(values)));
    steps_ = steps;
    return absl::OkStatus();
  };
  return Annotate(take(), path);
}

}  // namespace pipeloom
