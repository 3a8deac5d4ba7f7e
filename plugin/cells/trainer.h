#ifndef PLUGIN_CELLS_TRAINER_H_
#define PLUGIN_CELLS_TRAINER_H_

#include <chrono>
#include <deque>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "plugin/cells/build_module.h"
#include "plugin/cells/safetensors.h"
#include "plugin/runtime/session.h"

namespace pipeloom {

struct TrainerOptions {
  int stages = PipelineConfig().stages;
  std::string schedule = PipelineConfig().schedule;
  int threads = PipelineConfig().threads;                          // compute threads a stage
  std::chrono::milliseconds deadline = SessionOptions().deadline;  // of any wait for another stage
  // Each program gets a folder in it, step_0, predict_0, step_1 (for other inputs), ...; "": nothing is written.
  std::string dump_dir = CompileOptions().dump_dir;
  std::ostream* table = &std::cout;  // gets the table of the stages; may be null
  // These two are for ranks that are processes. Every rank gets what Predict returns, not the last stage's alone:
  bool output_broadcast = SessionOptions().output_broadcast;
  // What must be the same on all ranks beside the fields above and the pipeline's, such as the seed:
  std::vector<std::pair<std::string, std::string>> configuration;
};

// Trains a pipeline of cells, and predicts with it:
//
//   auto net = std::make_shared<Network>();
//   Pipeline pipeline(std::make_shared<WithLossCell>(net, std::make_shared<CrossEntropyLoss>()), /*micro_size=*/4,
//                     {{"_backbone.layer1", 0}, {"_backbone.layer2", 1}});
//   ASSIGN_OR_RETURN(auto trainer, Trainer::Create(pipeline, SGD(net->TrainableParams(), 0.01), options));
//   ASSIGN_OR_RETURN(float loss, trainer->Step({images.view(), labels.view()}));
//
// Dropouts draw anew in each step, counted from 0, or from where a checkpoint was saved. Parameters begin with their
// initial values. Axis 0 of all inputs is the batch. Used by one thread at a time.
//
// Stages are threads of this process, or processes that each have a trainer over their end of a transport. These make
// the same calls with the same arguments, as Session::CreateForRank says; all calls but WriteParameters are collective.
class Trainer {
 public:
  // InvalidArgument for cells, stages or an optimizer that cannot be (build_module.h, pipeline.h), and for a transport
  // of another number of ranks than stages. Without a transport stages are threads.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(Pipeline pipeline, Optimizer optimizer,
                                                         const TrainerOptions& options,
                                                         std::unique_ptr<Transport> transport = nullptr);
  // A network without a loss, that only predicts: CompileStep and Step are refused, the schedule of `options`
  // counts for nothing but must be one, and the table of stages is printed by the first CompilePredict or Predict.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(const PipelineCellInference& pipeline,
                                                         const TrainerOptions& options,
                                                         std::unique_ptr<Transport> transport = nullptr);

  // Makes ready for inputs of these types (their data is not read), and prints the table of stages the first time:
  // everything that can be refused before a step is refused here. Step and Predict do it for types that are new.
  absl::Status CompileStep(absl::Span<const TensorView> inputs);
  absl::Status CompilePredict(absl::Span<const TensorView> inputs);

  // One step of training; the loss before it. Session::Run says which errors there are and what they leave behind.
  absl::StatusOr<float> Step(absl::Span<const TensorView> inputs);
  // The same, with the gradients of that loss, which the step has updated by: of all parameters of the optimizer that
  // the network uses, by name; zero where the loss does not depend on one. A program of its own, compiled for types
  // that are new. On processes a gradient is of size zero where an output of Predict would be.
  absl::StatusOr<float> StepWithGradients(absl::Span<const TensorView> inputs, TensorMap* gradients);
  // The outputs of the network without its loss; of size zero on processes that do not have them, unless
  // `output_broadcast` is set.
  absl::StatusOr<std::vector<Tensor>> Predict(absl::Span<const TensorView> inputs);

  // The parameters of the network, by name, without the optimizer's state.
  absl::StatusOr<TensorMap> ReadParameters() const;
  // All or nothing: refuses names that the network does not have, or lacks, and other types, before it writes any.
  absl::Status WriteParameters(TensorMap values);
  // The same to and from a safetensors file, which does not depend on stages or time. With it goes how many steps of
  // training there were, from which dropouts go on; a file that does not say so leaves that. Only rank 0 sees the file.
  absl::Status SaveCheckpoint(const std::string& path) const;
  absl::Status LoadCheckpoint(const std::string& path);

 private:
  Trainer(Pipeline pipeline, std::optional<Optimizer> optimizer, TrainerOptions options, CellTree tree,
          std::unique_ptr<Session> session);
  static absl::StatusOr<std::unique_ptr<Trainer>> Start(Pipeline pipeline, std::optional<Optimizer> optimizer,
                                                        const TrainerOptions& options,
                                                        std::unique_ptr<Transport> transport);

  // A program of the session, for inputs of some types.
  struct Loaded {
    std::vector<TensorType> inputs;
    std::vector<TensorType> outputs;  // as Run writes them here
    int number;
    bool takes_step;                     // has the number of steps as its last input
    std::vector<std::string> gradients;  // the parameters whose gradients are the last outputs
  };
  using Programs = std::deque<Loaded>;  // a deque keeps references when it grows

  PipelineConfig Config() const;
  static const Loaded* Find(const Programs& programs, absl::Span<const TensorView> inputs);
  absl::StatusOr<Module> TrainingModule(absl::Span<const TensorView> inputs) const;
  absl::StatusOr<const Loaded*> LoadStep(absl::Span<const TensorView> inputs);
  absl::StatusOr<const Loaded*> LoadStepWithGradients(absl::Span<const TensorView> inputs);
  absl::StatusOr<const Loaded*> LoadPredict(absl::Span<const TensorView> inputs);
  absl::Status RunStep(const Loaded& loaded, absl::Span<const TensorView> inputs, absl::Span<const TensorView> outputs);
  absl::StatusOr<Tensor> ReadParameter(const std::string& name) const;
  void WarnOfPrints(const Module& module);  // once a cell
  absl::StatusOr<const Loaded*> Load(absl::StatusOr<Module> module, Programs& programs);

  Pipeline pipeline_;
  std::optional<Optimizer> optimizer_;  // none where the pipeline has no loss and only predicts
  TrainerOptions options_;
  CellTree tree_;
  std::unique_ptr<Session> session_;
  std::vector<std::pair<std::string, StageId>> dealt_;  // stages of cells, once a program was compiled
  Programs step_programs_;
  Programs gradient_programs_;  // steps that also give gradients out
  Programs predict_programs_;
  // The values of parameters that no program has used so far; the session has all others.
  TensorMap not_used_yet_;
  int64_t steps_ = 0;                        // of training, that ended well, with those of the checkpoint
  std::vector<TensorView> inputs_and_step_;  // room for them
  std::vector<std::string> warned_of_;       // cells that print without a stage
};

}  // namespace pipeloom

#endif  // PLUGIN_CELLS_TRAINER_H_
