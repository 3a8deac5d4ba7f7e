// Every table and chart of docs/concepts.md is made anew here; the document has them word for word.

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/file_io.h"
#include "kernels/base/status_macros.h"
#include "passes/schedule/lower_communication.h"
#include "passes/schedule/schedule_table.h"
#include "passes/schedule/simulate.h"
#include "passes/schedule/time_chart.h"

namespace pipeloom {
namespace {

// The document's example: layers that each take one unit of time for the forward of the whole batch, one for the
// gradient of their input and one for that of their weight.
constexpr int kLayers = 12;
constexpr double kOneDevice = 3.0 * kLayers;

struct Plan {
  std::string schedule;
  int stages;
  std::vector<int> layers;  // of each chunk
  int micro_batches;
  double message = 0;  // time of one, in forwards of a micro-batch on one stage of an even split
};

std::vector<int> Even(int chunks) { return std::vector<int>(static_cast<size_t>(chunks), kLayers / chunks); }

Simulation Simulated(const Plan& plan) {
  const int chunks = static_cast<int>(plan.layers.size());
  ScheduleCosts costs;
  for (const int layers : plan.layers) {
    const double share = static_cast<double>(layers) / plan.micro_batches;
    costs.chunks.push_back({share, share, share, share});
  }
  std::vector<CommunicationEdge> edges;
  const double time = plan.message * kLayers / plan.stages / plan.micro_batches;
  for (int chunk = 0; chunk + 1 < chunks; ++chunk) {
    edges.push_back({ChunkId(chunk), ChunkId(chunk + 1), true});
    edges.push_back({ChunkId(chunk + 1), ChunkId(chunk), false});
  }
  for (const CommunicationEdge& edge : edges) costs.edges.push_back({edge, time});
  const auto schedule = MakeSchedule(plan.schedule, plan.stages, plan.micro_batches, chunks / plan.stages);
  PIPELOOM_CHECK(schedule.ok(), schedule.status().message());
  const auto lowered = LowerCommunication(*schedule, edges);
  PIPELOOM_CHECK(lowered.ok(), lowered.status().message());
  const auto simulation = Simulate(*lowered, costs);
  PIPELOOM_CHECK(simulation.ok(), simulation.status().message());
  return *simulation;
}

std::string Percent(double share) { return absl::StrFormat("%.0f%%", 100 * share); }
std::string OneDigit(double number) { return absl::StrFormat("%.1f", number); }
std::string SpeedUp(const Simulation& s) { return OneDigit(kOneDevice / s.step_time); }
// Of all ranks together.
std::string Idle(const Simulation& s) {
  const double bubble = std::accumulate(s.bubble.begin(), s.bubble.end(), 0.0);
  return Percent(bubble / s.step_time / static_cast<double>(s.bubble.size()));
}
// Of the rank that keeps most, as a share of what one device would keep of the whole network and batch.
std::string Activations(const Simulation& s) {
  return absl::StrFormat("%.1f%%",
                         100 * *std::max_element(s.peak_activations.begin(), s.peak_activations.end()) / kLayers);
}

std::string Table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows) {
  std::string table = absl::StrCat("| ", absl::StrJoin(head, " | "), " |\n|");
  for (size_t i = 0; i < head.size(); ++i) absl::StrAppend(&table, i == 0 ? "---|" : "---:|");
  for (const auto& row : rows) absl::StrAppend(&table, "\n| ", absl::StrJoin(row, " | "), " |");
  return table + "\n";
}

void ExpectInDocument(const std::string& part) {
  const absl::StatusOr<std::string> document = ReadFile("docs/concepts.md");
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_NE(document->find("\n" + part), std::string::npos) << "docs/concepts.md should have, word for word:\n" << part;
}

TEST(ConceptsTest, StepOverMicroBatches) {
  std::vector<std::vector<std::string>> rows;
  for (const int micro_batches : {1, 2, 3, 4, 6, 8, 12, 16}) {
    const Simulation gpipe = Simulated({"gpipe", 3, Even(3), micro_batches});
    const Simulation one_f_one_b = Simulated({"1f1b", 3, Even(3), micro_batches});
    EXPECT_NEAR(gpipe.step_time, one_f_one_b.step_time, 1e-9) << "one column for both";
    rows.push_back({absl::StrCat(micro_batches), OneDigit(gpipe.step_time), SpeedUp(gpipe), Idle(gpipe),
                    Activations(gpipe), Activations(one_f_one_b)});
  }
  ExpectInDocument(
      Table({"micro-batches", "step time", "speed-up", "idle", "activations, gpipe", "activations, 1f1b"}, rows));
}

TEST(ConceptsTest, Charts) {
  for (const char* schedule : {"gpipe", "1f1b"}) {
    const Simulation simulation = Simulated({schedule, 3, Even(3), 4});
    ExpectInDocument(absl::StrCat("```\n", TimeChart(simulation, static_cast<int>(5 * simulation.step_time)), "```\n"));
  }
}

TEST(ConceptsTest, InterleavedOverMicroBatches) {
  std::vector<std::vector<std::string>> rows;
  for (const int micro_batches : {1, 3, 6, 9, 12, 15}) {
    const Simulation plain = Simulated({"1f1b", 3, Even(3), micro_batches});
    const Simulation interleaved = Simulated({"interleaved", 3, Even(6), micro_batches});
    rows.push_back({absl::StrCat(micro_batches), OneDigit(plain.step_time), Idle(plain), Activations(plain),
                    OneDigit(interleaved.step_time), Idle(interleaved), Activations(interleaved)});
  }
  ExpectInDocument(Table(
      {"micro-batches", "step time, 1f1b", "idle", "activations", "step time, interleaved", "idle", "activations"},
      rows));
  const auto schedule = MakeSchedule("interleaved", 3, 3, 2);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  ExpectInDocument(absl::StrCat("```\n", ScheduleToString(*schedule), "```\n"));
}

TEST(ConceptsTest, StepOverSplits) {
  std::vector<std::vector<std::string>> rows;
  for (const std::vector<int>& layers : {std::vector<int>{4, 4, 4}, {5, 4, 3}, {3, 4, 5}, {6, 3, 3}, {8, 2, 2}}) {
    const Simulation simulation = Simulated({"1f1b", 3, layers, 8});
    rows.push_back(
        {absl::StrJoin(layers, ", "), OneDigit(simulation.step_time), SpeedUp(simulation), Idle(simulation)});
  }
  ExpectInDocument(Table({"layers on the stages", "step time", "speed-up", "idle"}, rows));
}

TEST(ConceptsTest, StepOverStages) {
  std::vector<std::vector<std::string>> rows;
  for (const int stages : {1, 2, 3, 4, 6, 12}) {
    std::vector<std::string> row = {absl::StrCat(stages), Percent(1.0 / stages)};
    for (const int micro_batches : {8, 32}) {
      const Simulation simulation = Simulated({"1f1b", stages, Even(stages), micro_batches});
      for (const std::string& cell : {SpeedUp(simulation), Idle(simulation), Activations(simulation)}) {
        row.push_back(cell);
      }
    }
    rows.push_back(row);
  }
  ExpectInDocument(Table({"stages", "weights a rank", "speed-up, 8 micro-batches", "idle", "activations",
                          "speed-up, 32 micro-batches", "idle", "activations"},
                         rows));
}

TEST(ConceptsTest, StepOverTheTimeOfMessages) {
  std::vector<std::vector<std::string>> rows;
  for (const double message : {0.0, 0.25, 0.5, 1.0, 2.0}) {
    std::vector<std::string> row = {absl::StrCat(message)};
    for (const char* schedule : {"gpipe", "1f1b"}) {
      const Simulation simulation = Simulated({schedule, 3, Even(3), 8, message});
      row.push_back(OneDigit(simulation.step_time));
      row.push_back(Idle(simulation));
    }
    rows.push_back(row);
  }
  ExpectInDocument(Table({"time of a message", "step time, gpipe", "idle", "step time, 1f1b", "idle"}, rows));
}

// 12 layers of 1024 x 1024 weights, 768 rows of 1024 activations, f32, 3 ranks, in MiB.
TEST(ConceptsTest, ThreeKinds) {
  const double layer_weights = 1024.0 * 1024 * 4 / (1 << 20);
  const double layer_activations = 768.0 * 1024 * 4 / (1 << 20);
  const double ranks = 3;
  // A ring sends each byte of a sum over N ranks 2 (N - 1) / N times.
  const double ring = 2 * (ranks - 1) / ranks;
  const auto mib = [](double number) { return absl::StrFormat("%.1f", number); };
  const auto row = [&](const std::string& kind, double weights, double activations, double sent) {
    return std::vector<std::string>{kind, mib(weights), mib(activations), mib(sent)};
  };
  const Simulation pipeline = Simulated({"1f1b", 3, Even(3), 8});
  const double kept = *std::max_element(pipeline.peak_activations.begin(), pipeline.peak_activations.end());
  ExpectInDocument(
      Table({"kind", "weights a rank", "activations a rank", "sent by a rank in a step"},
            {row("one device", kLayers * layer_weights, kLayers * layer_activations, 0),
             // Every rank has all layers and a third of the rows; all gradients are summed.
             row("data", kLayers * layer_weights, kLayers * layer_activations / ranks, ring * kLayers * layer_weights),
             // Pairs of layers, the first cut by columns, the second by rows: the value between them is cut, the other
             // one is whole, and one sum of activations in the forward and one in the backward join a pair.
             row("model (tensor)", kLayers * layer_weights / ranks, kLayers / 2 * (1 + 1 / ranks) * layer_activations,
                 ring * kLayers / 2 * 2 * layer_activations),
             // The middle rank sends activations up and gradients down.
             row("pipeline, 8 micro-batches", kLayers * layer_weights / ranks, kept * layer_activations,
                 2 * layer_activations)}));
}

}  // namespace
}  // namespace pipeloom
