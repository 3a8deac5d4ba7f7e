#ifndef PASSES_SCHEDULE_SLOTS_IN_FLIGHT_H_
#define PASSES_SCHEDULE_SLOTS_IN_FLIGHT_H_

#include "passes/schedule/communication.h"
#include "passes/schedule/simulate.h"

namespace pipeloom {

// Slots with which the sender of `edge` never waits for one in a run that takes the times of `simulation`: the most
// messages that are, at a time, made or being made and not yet released (as ChannelCredits says). With these slots on
// all edges the simulated run is one that CheckProgress allows, so there is no deadlock (compute times being above 0),
// and none of its time is lost. The receiver's LiveWindow alone can be too few: on an edge that skips stages the sender
// runs ahead of the receiver. `edge` is one of the simulation's, and its receiver has a `released_after` action.
int SlotsInFlight(const Simulation& simulation, const CommunicationEdge& edge, ActionKind released_after, int group);

}  // namespace pipeloom

#endif  // PASSES_SCHEDULE_SLOTS_IN_FLIGHT_H_
