// A broadcast among some of the ranks, by a binomial tree: nobody sends more messages than log2 of their number,
// rounded up, so that a start does not take longer with each rank.
#pragma once

#include <span>

#include "lockstep/communicator.hpp"

namespace lockstep::comm {

/// From group[0] to all of `group`. Called by each of these ranks with the same list; the tag is not used for anything
/// else meanwhile.
void broadcast_in_group(Communicator& communicator, std::span<const int> group, std::span<std::byte> bytes, int tag,
                        const Operation& operation);

}  // namespace lockstep::comm
