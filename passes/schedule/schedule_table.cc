#include "passes/schedule/schedule_table.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/nearest_names.h"
#include "kernels/base/status_macros.h"
#include "passes/schedule/forward_only.h"
#include "passes/schedule/gpipe.h"
#include "passes/schedule/interleaved.h"
#include "passes/schedule/one_f_one_b.h"

namespace pipeloom {
namespace {

// Above it a schedule takes minutes to make and verify, and then more memory than there is.
constexpr int64_t kMostSharesOfWork = int64_t{1} << 20;

// Chunk c on rank c mod ranks: the next chunk is always on the next rank.
RankId LoopPlacement(const ScheduleShape& shape, ChunkId chunk) { return RankId(chunk.value() % shape.ranks); }

absl::Status OneChunkPerRank(const ScheduleShape& shape) {
  if (shape.chunks_per_rank == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("runs 1 chunk a rank, got ", shape.chunks_per_rank, "; give as many chunks as ranks"));
}

absl::Status AnyChunksPerRank(const ScheduleShape&) { return absl::OkStatus(); }

double TrainingBubble(const ScheduleShape& shape, const ShareTimes& times) {
  return (shape.ranks - 1) * (times.forward + times.input_gradient + times.weight_gradient);
}

double ForwardBubble(const ScheduleShape& shape, const ShareTimes& times) {
  return (shape.ranks - 1) * times.forward / shape.chunks_per_rank;
}

double InterleavedBubble(const ScheduleShape& shape, const ShareTimes& times) {
  return TrainingBubble(shape, times) / shape.chunks_per_rank;
}

double AllMicroBatches(const ScheduleShape& shape, RankId) { return shape.micro_batches; }

double RanksFromHereOn(const ScheduleShape& shape, RankId rank) {
  return std::min(shape.ranks - rank.value(), shape.micro_batches);
}

// (1 + (ranks - 1) / (ranks chunks_per_rank)) ranks on rank 0, where there are micro-batches enough.
double WarmUpInChunks(const ScheduleShape& shape, RankId rank) {
  if (shape.chunks_per_rank == 1) return RanksFromHereOn(shape, rank);
  const double warm_up = 2 * (shape.ranks - 1 - rank.value()) + (shape.chunks_per_rank - 1) * shape.ranks;
  return std::min<double>(warm_up + 1, shape.micro_batches * shape.chunks_per_rank) / shape.chunks_per_rank;
}

double OneChunk(const ScheduleShape& shape, RankId) { return 1.0 / shape.chunks_per_rank; }

constexpr ScheduleInfo kSchedules[] = {
    {"gpipe", /*trains=*/true, Gpipe, LoopPlacement, OneChunkPerRank, TrainingBubble, AllMicroBatches},
    {"1f1b", /*trains=*/true, OneForwardOneBackward, LoopPlacement, OneChunkPerRank, TrainingBubble, RanksFromHereOn},
    {"interleaved", /*trains=*/true, Interleaved, LoopPlacement, AnyChunksPerRank, InterleavedBubble, WarmUpInChunks},
    {"forward", /*trains=*/false, ForwardOnly, LoopPlacement, AnyChunksPerRank, ForwardBubble, OneChunk},
};

}  // namespace

absl::Span<const ScheduleInfo> ScheduleTable() { return kSchedules; }

std::string ScheduleChoices(bool trains) {
  std::vector<absl::string_view> names;
  for (const ScheduleInfo& info : kSchedules) {
    if (info.trains == trains) names.push_back(info.name);
  }
  return absl::StrJoin(names, " or ");
}

absl::StatusOr<const ScheduleInfo*> FindSchedule(absl::string_view name) {
  std::vector<std::string> names;
  for (const ScheduleInfo& info : kSchedules) {
    if (info.name == name) return &info;
    names.emplace_back(info.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("no schedule is named \"", name, "\"; choose from ",
                                                 absl::StrJoin(NearestFirst(name, std::move(names)), ", ")));
}

absl::StatusOr<Schedule> MakeSchedule(absl::string_view name, int ranks, int micro_batches, int chunks_per_rank) {
  ASSIGN_OR_RETURN(const ScheduleInfo* info, FindSchedule(name));
  if (ranks < 1 || micro_batches < 1 || chunks_per_rank < 1) {
    return absl::InvalidArgumentError(absl::StrCat("schedule ", name, " over ", ranks, " ranks, ", micro_batches,
                                                   " micro-batches and ", chunks_per_rank,
                                                   " chunks a rank; give at least 1 of each"));
  }
  // Some generators round the micro-batches up to a multiple of the ranks.
  const int64_t rounded = chunks_per_rank == 1 ? micro_batches : (int64_t{micro_batches} + ranks - 1) / ranks * ranks;
  if (rounded > kMostSharesOfWork / ranks / chunks_per_rank) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule ", name, " over ", ranks, " ranks, ", micro_batches, " micro-batches and ", chunks_per_rank,
        " chunks a rank; their product is at most ", kMostSharesOfWork, ", give fewer micro-batches"));
  }
  const ScheduleShape shape{ranks, micro_batches, chunks_per_rank};
  if (absl::Status status = info->precondition(shape); !status.ok()) {
    return Annotate(status, absl::StrCat("schedule ", name));
  }
  Schedule schedule;
  schedule.micro_batches = micro_batches;
  for (int chunk = 0; chunk < shape.chunks(); ++chunk) {
    schedule.placement.push_back(info->place(shape, ChunkId(chunk)));
  }
  for (int rank = 0; rank < ranks; ++rank) schedule.actions.push_back(info->generate(shape, RankId(rank)));
  return schedule;
}

}  // namespace pipeloom
