// Which works of a GPU are before which, whatever the GPU makes of it: by the order in a stream, by events, and by what
// the host waited for before it enqueued. A work is a launch, a copy or a memset.
//
// Each stream counts its works. A clock says of each stream how many of its works are done for sure.
#pragma once

#include <cstddef>
#include <vector>

#include "cuda/interpreter/types.hpp"

namespace lockstep::ptx {

using Clock = std::vector<u32>;

/// Both are done.
void join(Clock& to, const Clock& other);

struct Work {
  u32 number = 0;  ///< from 1, over all streams
  Clock before;    ///< what is done before it, itself included
};

class Order {
 public:
  /// A number for a stream; never given again.
  u32 add_stream() { return streams_++; }
  /// The next work on the stream, whose clock it moves on.
  Work enqueue(u32 stream, Clock& clock, const Clock& host);
  /// Whether work `earlier` is before one that has this clock.
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
