#include "cuda/interpreter/order.hpp"

#include <algorithm>

namespace lockstep::ptx {

void join(Clock& to, const Clock& other) {
  if (to.size() < other.size()) to.resize(other.size());
  for (std::size_t i = 0; i < other.size(); ++i) to[i] = std::max(to[i], other[i]);
}

bool knows(const Clock& clock, const Clock& other) {
  for (std::size_t i = 0; i < other.size(); ++i) {
    if (other[i] > (i < clock.size() ? clock[i] : 0)) return false;
  }
  return true;
}

Work Order::enqueue(u32 stream, Clock& clock, const Clock& host) {
  join(clock, host);
  if (clock.size() <= stream) clock.resize(stream + 1);
  places_.push_back({stream, ++clock[stream]});
  return {static_cast<u32>(places_.size() - 1), clock};
}

}  // namespace lockstep::ptx
