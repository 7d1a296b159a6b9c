#include "launch/hang_watch.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::launch {

double beat_period(int ranks, const HangLimits& limits) {
  constexpr double kShortest = 0.25, kBeatsASecond = 64, kBeatsInLimit = 8;
  return std::min(std::max(kShortest, ranks / kBeatsASecond), limits.seconds / kBeatsInLimit);
}

HangWatch::HangWatch(int ranks, HangLimits limits, double now) : limits_(limits), moved_(now), ranks_(ranks) {}

void HangWatch::connected(int rank, double now) {
  Rank& one = ranks_.at(rank);
  one.here = true;
  one.heard = moved_ = now;
}

void HangWatch::beat(int rank, double now, const Beat& beat) {
  Rank& one = ranks_.at(rank);
  if (beat.ticks != one.beat.ticks || beat.step != one.beat.step) moved_ = now;
  one.heard = now;
  one.beat = beat;
  step_ = std::max(step_, beat.step);
}

void HangWatch::left(int rank) {
  ranks_.at(rank).gone = true;
}

bool HangWatch::all_connected() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.here; });
}

double HangWatch::limit() const {
  double median = 0;
  for (const Rank& rank : ranks_) median = std::max(median, rank.beat.median_seconds);
  return std::max(limits_.seconds, limits_.steps * median);
}

std::optional<Hang> HangWatch::check(double now) const {
  const double limit_now = limit();
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const Rank& rank = ranks_[r];
    if (rank.here && !rank.gone && now - rank.heard > limit_now)
      return Hang{static_cast<int>(r), now - rank.heard, true};
  }
  // All have said bye: only mpirun still has to end.
  if (std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.gone; })) return std::nullopt;
  const double patience = step_ < 0 ? std::max(limits_.start_seconds, limit_now) : limit_now;
  if (now - moved_ <= patience) return std::nullopt;
  return Hang{most_suspect(), now - moved_, false};
}

// A rank that has never connected; else one that others wait for, but that waits for nobody; else the one that most
// others wait for.
int HangWatch::most_suspect() const {
  std::vector<int> votes(ranks_.size(), 0);
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const Rank& rank = ranks_[r];
    if (!rank.here) return r;
    if (rank.gone) continue;
    if (rank.beat.peer < 0) votes[r] += static_cast<int>(ranks_.size());
    if (rank.beat.peer >= 0 && rank.beat.peer < static_cast<int>(ranks_.size())) {
      ++votes[rank.beat.peer];
    }
  }
  return std::max_element(votes.begin(), votes.end()) - votes.begin();
}

std::vector<std::string> HangWatch::states(double now) const {
  const double limit_now = limit();
  std::vector<std::string> lines;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const Rank& rank = ranks_[r];
    if (!rank.here) {
      lines.push_back(fmt::format("rank {}: never connected", r));
    } else if (rank.gone) {
      lines.push_back(fmt::format("rank {}: ended", r));
    } else if (now - rank.heard > limit_now / 2) {
      lines.push_back(
          fmt::format("rank {}: no heartbeat for {:.1f} s; before: {}", r, now - rank.heard, rank.beat.summary));
    } else {
      lines.push_back(fmt::format("rank {}: {}", r, rank.beat.summary));
    }
  }
  return lines;
}

}  // namespace lockstep::launch
