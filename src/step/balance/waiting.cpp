#include "step/balance/waiting.hpp"

#include <algorithm>

namespace lockstep::balance {

void Waiting::add(std::span<const RankMeasure> ranks) {
  const auto by_reduce = [](const RankMeasure& a, const RankMeasure& b) { return a.reduce < b.reduce; };
  // the last to arrive, so it waited for nobody
  const auto last = std::min_element(ranks.begin(), ranks.end(), by_reduce);
  double sum = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    RankTimes& times = times_[r];
    const double waited = ranks[r].reduce - last->reduce;
    times.compute += ranks[r].compute / workers_[r];
    times.data += ranks[r].data / workers_[r];
    times.waited += waited;
    times.reduce += last->reduce;
    times.update += ranks[r].fixed;
    sum += waited;
  }
  if (ranks.size() > 1) {
    times_[last - ranks.begin()].held_up += sum / (ranks.size() - 1);
  }
}

}  // namespace lockstep::balance
