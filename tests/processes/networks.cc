// Trains one of the networks of networks_test.py, whose losses and weights must not depend on how it is run, or
// predicts with it.
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/casts.h"
#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/file_io.h"
#include "kernels/base/status_macros.h"
#include "plugin/cells/counter_random.h"
#include "plugin/cells/layers.h"
#include "plugin/cells/losses.h"
#include "plugin/cells/ops.h"
#include "plugin/cells/trainer.h"
#include "plugin/launch/launch.h"

ABSL_FLAG(std::string, network, "skip", "skip or tied");
ABSL_FLAG(std::string, transport, "threads", "As the samples take it.");
ABSL_FLAG(std::string, schedule, "1f1b", "");
ABSL_FLAG(int32_t, stages, 1, "1 to 4");
ABSL_FLAG(std::string, losses_out, "", "");
ABSL_FLAG(std::string, weights_out, "", "");
ABSL_FLAG(std::string, logits_out, "", "Predicts instead; rank N writes what it gets to a file of this name, and .N");

namespace pipeloom {
namespace {

constexpr int kRows = 12;
constexpr int kMicroBatches = 3;
constexpr int kSteps = 4;
constexpr int kClasses = 11;
constexpr int kWidth = 16;

// The output of the first layer goes on over two layers to the last one.
class SkipNetwork : public Cell {
 public:
  SkipNetwork() {
    for (size_t i = 0; i < layers_.size(); ++i) {
      layers_[i] = &AddCell<Dense>(absl::StrCat("layer", i), i == 0 ? kClasses : kWidth, i == 3 ? kClasses : kWidth);
    }
  }

 protected:
  Var Construct(Var x) override {
    const Var first = ops::Tanh((*layers_[0])(x));
    x = ops::Relu((*layers_[1])(first));
    x = ops::Gelu((*layers_[2])(x));
    return (*layers_[3])(ops::Add(x, first));
  }

 private:
  std::array<Dense*, 4> layers_;
};

// Ids -> logits over the vocabulary, by the table that embeds the ids.
class TiedNetwork : public Cell {
 public:
  TiedNetwork()
      : embedding_(AddCell<Embedding>("embedding", kClasses, kWidth)),
        dropout_(AddCell<Dropout>("dropout", 0.25)),
        body_(AddCell<Dense>("body", kWidth, kWidth)),
        head_(AddCell<Dense>("head", kWidth, kClasses)) {
    head_.weight = embedding_.embedding_table;
  }

 protected:
  Var Construct(Var ids) override { return head_(ops::Tanh(body_(dropout_(embedding_(ids))))); }

 private:
  Embedding& embedding_;
  Dropout& dropout_;
  Dense& body_;
  Dense& head_;
};

// The children in equal shares, or in turn where the schedule is interleaved, so that it has chunks to interleave.
StageConfig Spread(const Cell& network, const std::string& before, int stages, bool in_turn) {
  StageConfig config;
  const int cells = static_cast<int>(network.children().size());
  for (int i = 0; i < cells; ++i) {
    config.emplace_back(absl::StrCat(before, network.children()[static_cast<size_t>(i)].name),
                        in_turn ? i % stages : i * stages / cells);
  }
  return config;
}

int64_t Drawn(int step, int64_t row, int salt) {
  const auto index = static_cast<uint64_t>(step * kRows + row);
  return static_cast<int64_t>(CounterRandom(7, absl::StrCat("row", salt)).Below(kClasses, index));
}

// One-hot rows, or ids; and labels.
std::vector<Tensor> Batch(bool ids, int step) {
  std::vector<Tensor> batch;
  batch.emplace_back(ids ? TensorType{DType::kInt32, {kRows}} : TensorType{DType::kFloat32, {kRows, kClasses}});
  batch.emplace_back(TensorType{DType::kInt32, {kRows}});
  for (int64_t row = 0; row < kRows; ++row) {
    const int64_t id = Drawn(step, row, 0);
    if (ids) {
      batch[0].data<int32_t>()[row] = static_cast<int32_t>(id);
    } else {
      for (int64_t i = 0; i < kClasses; ++i) batch[0].data<float>()[row * kClasses + i] = i == id ? 1.0f : 0.0f;
    }
    batch[1].data<int32_t>()[row] = static_cast<int32_t>(Drawn(step, row, 1));
  }
  return batch;
}

absl::Status TrainIt(const std::shared_ptr<Cell>& network, bool ids, const TrainerOptions& options, World& world) {
  const Pipeline pipeline(
      std::make_shared<WithLossCell>(network, std::make_shared<CrossEntropyLoss>()), kMicroBatches,
      Spread(*network, absl::StrCat(kBackbone, "."), options.stages, options.schedule == "interleaved"));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Trainer> trainer,
      Trainer::Create(pipeline, Adam(network->TrainableParams(), 0.01), options, std::move(world.transport)));
  std::vector<std::string> losses;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<Tensor> batch = Batch(ids, step);
    ASSIGN_OR_RETURN(const float loss, trainer->Step({batch[0].view(), batch[1].view()}));
    losses.push_back(absl::StrCat(absl::Hex(absl::bit_cast<uint32_t>(loss))));
  }
  RETURN_IF_ERROR(trainer->SaveCheckpoint(absl::GetFlag(FLAGS_weights_out)));
  if (world.rank != RankId(0)) return absl::OkStatus();
  return WriteFileAtomically(absl::GetFlag(FLAGS_losses_out), {absl::StrJoin(losses, "\n")});
}

// The logits of each row of each step, a line of hexadecimal words.
absl::Status PredictWithIt(const std::shared_ptr<Cell>& network, bool ids, TrainerOptions options, World& world) {
  options.output_broadcast = true;
  const PipelineCellInference pipeline(network, kMicroBatches, Spread(*network, "", options.stages, false));
  ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                   Trainer::Create(pipeline, options, std::move(world.transport)));
  std::string text;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<Tensor> batch = Batch(ids, step);
    ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, trainer->Predict({batch[0].view()}));
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t i = 0; i < kClasses; ++i) {
        const float logit = outputs[0].data<float>()[row * kClasses + i];
        absl::StrAppend(&text, absl::Hex(absl::bit_cast<uint32_t>(logit)), " ");
      }
      text += "\n";
    }
  }
  return WriteFileAtomically(absl::StrCat(absl::GetFlag(FLAGS_logits_out), ".", world.rank.value()), {text});
}

absl::Status Run(World& world) {
  const bool ids = absl::GetFlag(FLAGS_network) == "tied";
  std::shared_ptr<Cell> network = std::make_shared<SkipNetwork>();
  if (ids) network = std::make_shared<TiedNetwork>();
  network->SetSeed(3);
  TrainerOptions options;
  options.stages = absl::GetFlag(FLAGS_stages);
  options.schedule = absl::GetFlag(FLAGS_schedule);
  options.table = nullptr;
  if (!absl::GetFlag(FLAGS_logits_out).empty()) return PredictWithIt(network, ids, options, world);
  return TrainIt(network, ids, options, world);
}

}  // namespace
}  // namespace pipeloom

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  pipeloom::World world;
  absl::Status status = pipeloom::JoinWorld(
      argc, argv, {absl::GetFlag(FLAGS_transport), absl::GetFlag(FLAGS_stages), std::chrono::seconds(60)}, &world);
  if (status.ok()) status = pipeloom::Run(world);
  return pipeloom::EndRank(status, "networks", world);
}
