#include "balance/waiting.hpp"

#include <algorithm>

namespace lockstep::balance {

void Waiting::add(std::span<const RankMeasure> ranks) {
  const auto by_exchange = [](const RankMeasure& a, const RankMeasure& b) { return a.exchange < b.exchange; };
  const auto last = std::min_element(ranks.begin(), ranks.end(), by_exchange);  // it waited for nobody
  double sum = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    RankTimes& times = times_[r];
    const double waited = ranks[r].exchange - last->exchange;
    times.compute += ranks[r].compute / workers_[r];
    times.data += ranks[r].data / workers_[r];
    times.waited += waited;
    times.exchange += last->exchange;
    times.update += ranks[r].fixed;
    sum += waited;
  }
  if (ranks.size() > 1) {
    times_[static_cast<std::size_t>(last - ranks.begin())].held_up += sum / static_cast<double>(ranks.size() - 1);
  }
}

}  // namespace lockstep::balance
