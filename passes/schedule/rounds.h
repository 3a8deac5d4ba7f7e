#ifndef PASSES_SCHEDULE_ROUNDS_H_
#define PASSES_SCHEDULE_ROUNDS_H_

#include <vector>

#include "passes/schedule/schedule.h"

namespace pipeloom {

// One chunk's work on one micro-batch.
struct ChunkWork {
  ChunkId chunk;
  MicroBatchId micro_batch;
};

// The order in which a rank that has several chunks goes over its work: micro-batches in groups of as many as there are
// ranks (the last group may be short), and for each group all chunks of the rank, from its first to its last (forward)
// or from its last to its first. When the first micro-batch of a group has come through all ranks, the first rank has
// just done with the last one, and goes on with the next chunk without a pause.
std::vector<ChunkWork> WorkInRounds(const ScheduleShape& shape, RankId rank, bool forward);

}  // namespace pipeloom

#endif  // PASSES_SCHEDULE_ROUNDS_H_
