// Which works of a GPU precede which, whatever the GPU does: by the order in a stream, by events, and by what the host
// waited for before it enqueued them. A work is a launch, a copy or a memset.
//
// Each stream counts its works. A clock holds, for each stream, how many of its works are certainly done.
#pragma once

#include <cstddef>
#include <vector>

#include "cuda/interpreter/types.hpp"

namespace lockstep::ptx {

using Clock = std::vector<u32>;

/// What either clock knows to be done.
void join(Clock& to, const Clock& other);
/// Whether all that `other` knows to be done is known to the clock, too.
[[nodiscard]] bool knows(const Clock& clock, const Clock& other);

struct Work {
  u32 number = 0;  ///< from 1, over all streams
  Clock before;    ///< what is done before it, including itself
};

class Order {
 public:
  /// The number of a new stream; never reused.
  u32 add_stream() { return streams_++; }
  /// The next work on the stream; advances the stream's clock.
  Work enqueue(u32 stream, Clock& clock, const Clock& host);
  /// Whether work `earlier` precedes one with this clock.
  [[nodiscard]] bool is_before(u32 earlier, const Clock& clock) const {
    const Place& place = places_[earlier];
    return place.stream < clock.size() && clock[place.stream] >= place.position;
  }

 private:
  struct Place {
    u32 stream = 0, position = 0;
  };
  u32 streams_ = 0;
  std::vector<Place> places_{{}};  ///< of each work
};

}  // namespace lockstep::ptx
