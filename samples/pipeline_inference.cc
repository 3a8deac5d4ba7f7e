// Predicts with a small language model on four stages:
//
//   stage 0: word_embedding  |  stage 1: layer1  |  stage 2: layer2  |  stage 3: head
//
// The first and the last stage share the embedding's table. Every rank gets the logits and prints them.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/status_macros.h"
#include "plugin/cells/layers.h"
#include "plugin/cells/ops.h"
#include "plugin/cells/trainer.h"
#include "plugin/launch/launch.h"

ABSL_FLAG(int32_t, stages, 4,
          "Stages of the pipeline, each a rank: 1 to 4; the network's four cells are spread over them.");
ABSL_FLAG(std::string, transport, pipeloom::LaunchOptions().transport,
          "What the stages are. threads: threads of this process. mpi, shm: processes; they are started with mpirun "
          "unless a launcher has done so. auto: processes if mpirun started more than one, else threads.");
ABSL_FLAG(int32_t, micro_batches, 4, "Micro-batches that a batch is divided into.");
ABSL_FLAG(int32_t, batch_size, 8, "Sequences.");
ABSL_FLAG(int32_t, generate, 0, "Ids to generate for each sequence: the likeliest one is fed back as input.");
ABSL_FLAG(uint64_t, seed, 1, "The initial weights follow from it.");

namespace pipeloom {
namespace {

constexpr int64_t kVocabulary = 32;
constexpr int64_t kWidth = 32;

// Ids [batch, 1] -> their rows of the table, and the table itself for whoever maps back to ids.
class VocabEmbedding : public Cell {
 public:
  VocabEmbedding() : table_(AddParameter("embedding_table", {kVocabulary, kWidth}, Ones())) {}
  std::vector<Var> Construct(const std::vector<Var>& ids) override {
    return {ops::Gather(table_, ops::Reshape(ids[0], {-1})), table_};
  }

 private:
  ParameterPtr& table_;
};

// How likely each id comes next.
class Head : public Cell {
 public:
  Var Construct(Var state, Var table) override { return ops::MatMul(state, ops::Transpose(table, {1, 0})); }
};

class Network : public Cell {
 public:
  Network()
      : word_embedding_(AddCell<VocabEmbedding>("word_embedding")),
        layer1_(AddCell<Dense>("layer1", kWidth, kWidth)),
        layer2_(AddCell<Dense>("layer2", kWidth, kWidth)),
        head_(AddCell<Head>("head")) {}

  std::vector<Var> Construct(const std::vector<Var>& ids) override {
    const std::vector<Var> embedded = word_embedding_(ids);
    return {head_(layer2_(layer1_(embedded[0])), embedded[1])};
  }

 private:
  VocabEmbedding& word_embedding_;
  Dense& layer1_;
  Dense& layer2_;
  Head& head_;
};

absl::StatusOr<std::unique_ptr<Trainer>> MakeTrainer(int stages, World& world) {
  auto network = std::make_shared<Network>();
  network->SetSeed(absl::GetFlag(FLAGS_seed));
  const int cells = static_cast<int>(network->children().size());
  if (stages < 1 || stages > cells) {
    return absl::InvalidArgumentError(
        absl::StrCat("--stages=", stages, ": the network has ", cells, " cells; give 1 to ", cells));
  }
  for (int i = 0; i < cells; ++i)
    network->children()[static_cast<size_t>(i)].cell->SetPipelineStage(i * stages / cells);

  TrainerOptions options;
  options.stages = stages;
  options.table = nullptr;
  options.output_broadcast = true;
  options.configuration = {{"batch_size", absl::StrCat(absl::GetFlag(FLAGS_batch_size))},
                           {"generate", absl::StrCat(absl::GetFlag(FLAGS_generate))},
                           {"seed", absl::StrCat(absl::GetFlag(FLAGS_seed))}};
  return Trainer::Create(PipelineCellInference(network, absl::GetFlag(FLAGS_micro_batches)), options,
                         std::move(world.transport));
}

void PrintLogits(const Tensor& logits) {
  std::printf("logits of %lld sequences:\n", static_cast<long long>(logits.type().shape[0]));
  for (int64_t row = 0; row < logits.type().shape[0]; ++row) {
    for (int64_t i = 0; i < kVocabulary; ++i) {
      std::printf("%s%.9g", i == 0 ? "" : " ", logits.data<float>()[row * kVocabulary + i]);
    }
    std::printf("\n");
  }
}

// Of each sequence.
void LikeliestIds(const Tensor& logits, Tensor* ids) {
  for (int64_t row = 0; row < logits.type().shape[0]; ++row) {
    const float* of_row = logits.data<float>() + row * kVocabulary;
    ids->data<int32_t>()[row] = static_cast<int32_t>(std::max_element(of_row, of_row + kVocabulary) - of_row);
  }
}

absl::Status Run(World& world) {
  const int64_t batch = absl::GetFlag(FLAGS_batch_size);
  if (batch < 1) return absl::InvalidArgumentError(absl::StrCat("--batch_size=", batch, " cannot be; give at least 1"));
  const int generate = absl::GetFlag(FLAGS_generate);
  if (generate < 0) {
    return absl::InvalidArgumentError(absl::StrCat("--generate=", generate, " cannot be; give at least 0"));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, MakeTrainer(absl::GetFlag(FLAGS_stages), world));
  Tensor ids(TensorType{DType::kInt32, {batch, 1}});
  for (int64_t row = 0; row < batch; ++row) ids.data<int32_t>()[row] = static_cast<int32_t>(row % kVocabulary);
  ASSIGN_OR_RETURN(std::vector<Tensor> outputs, trainer->Predict({ids.view()}));
  PrintLogits(outputs[0]);

  std::vector<std::string> sequences(static_cast<size_t>(batch));
  for (int left = generate; left > 0; --left) {
    LikeliestIds(outputs[0], &ids);
    for (int64_t row = 0; row < batch; ++row) {
      absl::StrAppend(&sequences[static_cast<size_t>(row)], " ", ids.data<int32_t>()[row]);
    }
    if (left > 1) {
      ASSIGN_OR_RETURN(outputs, trainer->Predict({ids.view()}));
    }
  }
  for (size_t row = 0; row < sequences.size() && !sequences[row].empty(); ++row) {
    std::printf("sequence %zu goes on with%s\n", row, sequences[row].c_str());
  }
  return absl::OkStatus();
}

absl::Status Start(int argc, char** argv, World& world) {
  absl::SetProgramUsageMessage("Predicts with a small language model, as a pipeline of stages.");
  absl::FlagsUsageConfig usage;
  usage.contains_help_flags = [](absl::string_view file) { return absl::EndsWith(file, "pipeline_inference.cc"); };
  absl::SetFlagsUsageConfig(usage);
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if (rest.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat("'", rest[1], "' is no flag; --help lists the flags"));
  }
  RETURN_IF_ERROR(JoinWorld(
      argc, argv, {absl::GetFlag(FLAGS_transport), absl::GetFlag(FLAGS_stages), TrainerOptions().deadline}, &world));
  return Run(world);
}

}  // namespace
}  // namespace pipeloom

int main(int argc, char** argv) {
  pipeloom::World world;
  const absl::Status status = pipeloom::Start(argc, argv, world);
  return pipeloom::EndRank(status, "pipeline_inference", world);
}
