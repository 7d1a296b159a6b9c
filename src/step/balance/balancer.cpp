#include "step/balance/balancer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "core/median.hpp"
#include "lockstep/error.hpp"
#include "step/balance/split.hpp"

namespace lockstep::balance {

namespace {

constexpr std::size_t kHistory = 256;
constexpr double kScatterWeight = 0.1;

/// The mean of the two in the middle of an even number; median() takes the upper one.
double mean_of_middle(std::vector<double> values) {
  const auto middle = values.begin() + (values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 != 0) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

bool SpeedModel::is_jump(double mean, double typical) const {
  const auto slower = [&](double value) { return value > tuning_.jump * mean_; };
  const auto faster = [&](double value) { return value * tuning_.jump < mean_; };
  return (slower(mean) && slower(typical)) || (faster(mean) && faster(typical));
}

bool SpeedModel::add(double mean, double typical, bool jumps) {
  history_.push_back(mean);
  if (history_.size() > kHistory) history_.pop_front();
  const bool jump = known() && jumps && is_jump(mean, typical);
  if (jump) window_.clear();
  window_.push_back(mean);
  if (window_.size() > static_cast<std::size_t>(tuning_.window)) window_.pop_front();
  const double middle = mean_of_middle({window_.begin(), window_.end()});
  const bool settled = static_cast<int>(window_.size()) >= 3;
  const double noise = std::max(tuning_.snap, tuning_.snap_scatter * scatter_);
  const bool change = jump || (settled && std::abs(middle / mean_ - 1) > noise);
  age_ = change ? std::min(3, static_cast<int>(window_.size())) : std::min(age_ + 1, tuning_.memory);
  mean_ = change || !known() ? middle : mean_ + (middle - mean_) / age_;
  if (!jump) scatter_ += kScatterWeight * (std::min(std::abs(mean / middle - 1), 3 * scatter_ + 0.01) - scatter_);
  return jump;
}

double SpeedModel::long_mean(int samples) const {
  if (history_.empty()) return mean_;
  const auto count = std::min(history_.size(), static_cast<std::size_t>(std::max(1, samples)));
  double sum = 0;
  for (auto value = history_.end() - count; value != history_.end(); ++value) {
    sum += *value;
  }
  return sum / count;
}

namespace {

constexpr double kSlack = 0.01;       // of the predicted step; given up so that fewer micro-batches move
constexpr int kMaxLevel = 6;          // patience is at most 3 << 6 samples
constexpr int kReversalSamples = 50;  // << level: a move that reverts one not older than this is a reversal
constexpr int kQuietSamples = 100;    // << level: after so many samples without a reversal, the patience is halved

double median_of_known(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !(value > 0); });
  return median(std::move(values));
}

constexpr double kErrorOfScatter = 1.5;  // a standard deviation is 1.25 mean distances, and a mean of medians is less
                                         // accurate than a mean

int partial_sums(int micro_batches) {
  return std::popcount(static_cast<unsigned>(micro_batches)) + 1;
}

}  // namespace

Balancer::Balancer(BalancerOptions options, std::vector<int> counts)
    : options_(std::move(options)), counts_(std::move(counts)), sums_(counts_.size()) {
  LOCKSTEP_CHECK(options_.workers.size() == ranks() && options_.max_micro_batches.size() == ranks(),
                 "a value for each rank");
  speeds_.assign(ranks(), SpeedModel(options_.speed));
  fixed_ = speeds_;
  direction_.assign(ranks(), 0);
  moved_at_.assign(ranks(), 0);
}

std::optional<Decision> Balancer::start(std::span<const double> seconds_per_micro_batch, double least_gain,
                                        const std::string& from) {
  LOCKSTEP_CHECK(seconds_per_micro_batch.size() == ranks(), "a speed for each rank");
  for (std::size_t r = 0; r < ranks(); ++r) {
    if (seconds_per_micro_batch[r] > 0) speeds_[r].start(seconds_per_micro_batch[r]);
  }
  const auto ranks_now = costs();
  if (ranks_now.empty()) return std::nullopt;
  Decision decision;
  decision.counts = best_split(ranks_now, options_.micro_batches, 0, counts_, kSlack);
  decision.predicted_before = step_seconds(ranks_now, counts_, 0);
  decision.predicted = step_seconds(ranks_now, decision.counts, 0);
  if (decision.counts == counts_ || decision.predicted_before <= decision.predicted * (1 + least_gain))
    return std::nullopt;
  decision.reason = from;
  decision.seconds_per_micro_batch = this->seconds_per_micro_batch();
  counts_ = decision.counts;
  return decision;
}

std::vector<double> Balancer::seconds_per_micro_batch() const {
  std::vector<double> seconds;
  for (const SpeedModel& speed : speeds_) seconds.push_back(speed.known() ? speed.seconds() : 0);
  return seconds;
}

// Empty as long as nothing is known. A rank that was never measured (it had no micro-batch) is assumed to be average.
std::vector<RankCost> Balancer::costs() const {
  std::vector<double> seconds = seconds_per_micro_batch();
  if (level_ > 0) {
    for (std::size_t r = 0; r < ranks(); ++r) seconds[r] = speeds_[r].long_mean(horizon());
  }
  const double ordinary = median_of_known(seconds);
  std::vector<RankCost> costs;
  for (std::size_t r = 0; r < ranks() && ordinary > 0; ++r) {
    costs.push_back({.seconds_per_micro_batch = seconds[r] > 0 ? seconds[r] : ordinary,
                     .fixed_seconds = fixed_[r].known() ? fixed_[r].seconds() : 0,
                     .workers = options_.workers[r],
                     .max_micro_batches = options_.max_micro_batches[r]});
  }
  return costs;
}

std::vector<int> Balancer::split(int micro_batches, std::span<const int> before) const {
  auto ranks_now = costs();
  for (RankCost& rank : ranks_now) rank.fixed_seconds = 0, rank.max_micro_batches = micro_batches;
  if (!ranks_now.empty()) {
    auto counts = best_split_without_reduce(ranks_now, micro_batches);
    const double now = step_seconds(ranks_now, before, 0), best = step_seconds(ranks_now, counts, 0);
    if (now > best * (1 + options_.least_gain)) return counts;
  }
  return {before.begin(), before.end()};
}

std::optional<Decision> Balancer::observe(std::span<const int> counts, std::span<const RankMeasure> ranks,
                                          double seconds) {
  LOCKSTEP_CHECK(ranks.size() == this->ranks(), "a measure of each rank");
  if (!std::equal(counts.begin(), counts.end(), counts_.begin(), counts_.end())) return std::nullopt;
  add(ranks, seconds);
  if (seconds_ < options_.sample_seconds) return std::nullopt;
  take_sample();
  auto decision = evaluate();
  std::fill(sums_.begin(), sums_.end(), RankMeasure{});
  seconds_ = reduce_sum_ = 0;
  steps_ = 0;
  return decision;
}

void Balancer::add(std::span<const RankMeasure> ranks, double seconds) {
  std::size_t last = 0;  // the last rank to arrive waited for nobody: its wait is the exposed all-reduce
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    sums_[r].micro_batches += ranks[r].micro_batches;
    sums_[r].compute += ranks[r].compute;
    sums_[r].typical += ranks[r].typical * ranks[r].micro_batches;
    sums_[r].fixed += ranks[r].fixed;
    if (ranks[r].reduce < ranks[last].reduce) last = r;
  }
  reduce_sum_ += ranks[last].reduce / partial_sums(counts_[last]);
  seconds_ += seconds;
  ++steps_;
}

void Balancer::take_sample() {
  ++samples_;
  jumped_ = -1;
  for (std::size_t r = 0; r < ranks(); ++r) {
    const RankMeasure& sum = sums_[r];
    if (sum.fixed > 0) fixed_[r].add(sum.fixed / steps_, sum.fixed / steps_, false);
    if (!(sum.micro_batches > 0) || !(sum.compute > 0)) continue;
    const double before = speeds_[r].seconds(), mean = sum.compute / sum.micro_batches;
    if (!speeds_[r].add(mean, sum.typical / sum.micro_batches, level_ == 0)) continue;
    jumped_ = r;
    jump_factor_ = mean / before;
  }
  if (reduce_sum_ > 0) reduce_.add(reduce_sum_ / steps_, reduce_sum_ / steps_, false);
  if (level_ > 0 && samples_ - reversed_at_ > kQuietSamples << level_) {
    --level_;
    reversed_at_ = samples_;
  }
}

// By how much the slowest of several equal ranks may appear slower than it is: the error of an estimate, for the worst
// of many.
double Balancer::threshold(std::span<const RankCost> costs) const {
  std::size_t slowest = 0;
  double most = 0;
  std::vector<double> scatters;
  for (std::size_t r = 0; r < ranks(); ++r) {
    const double seconds = rank_seconds(costs[r], counts_[r], reduce());
    if (seconds > most) most = seconds, slowest = r;
    scatters.push_back(speeds_[r].scatter());
  }
  const int samples = level_ > 0 ? horizon() : std::max(1, speeds_[slowest].age());
  const double error = kErrorOfScatter * median_of_known(scatters) / std::sqrt(samples);
  return options_.least_gain + error * std::sqrt(2 * std::log(static_cast<double>(ranks())));
}

std::optional<Decision> Balancer::evaluate() {
  const auto ranks_now = costs();
  if (ranks_now.empty()) return std::nullopt;
  const double now = step_seconds(ranks_now, counts_, reduce()), least = threshold(ranks_now);
  const auto gains = [&](double other) { return now > other * (1 + least); };
  if (!gains(fastest_step(ranks_now, options_.micro_batches, reduce()))) return in_a_row_ = 0, std::nullopt;
  Decision decision;
  decision.counts = best_split(ranks_now, options_.micro_batches, reduce(), counts_, kSlack);
  decision.predicted = step_seconds(ranks_now, decision.counts, reduce());
  if (!gains(decision.predicted)) return in_a_row_ = 0, std::nullopt;
  ++in_a_row_;
  if (jumped_ < 0 && in_a_row_ < horizon()) return std::nullopt;
  decision.reason = reason();
  for (const RankCost& rank : ranks_now) decision.seconds_per_micro_batch.push_back(rank.seconds_per_micro_batch);
  decision.reduce_seconds = reduce();
  decision.measured = seconds_ / steps_;
  decision.predicted_before = now;
  note_directions(decision.counts);
  counts_ = decision.counts;
  in_a_row_ = 0;
  return decision;
}

void Balancer::note_directions(const std::vector<int>& counts) {
  bool reversed = false;
  for (std::size_t r = 0; r < ranks(); ++r) {
    const int direction = (counts[r] > counts_[r]) - (counts[r] < counts_[r]);
    if (direction == 0) continue;
    reversed |= direction == -direction_[r] && samples_ - moved_at_[r] <= kReversalSamples << level_;
    direction_[r] = direction;
    moved_at_[r] = samples_;
  }
  if (!reversed) return;
  level_ = std::min(level_ + 1, kMaxLevel);
  reversed_at_ = samples_;
}

std::string Balancer::reason() const {
  if (jumped_ < 0) return fmt::format("a faster split, {} samples in a row", in_a_row_);
  const int rank = options_.numbers.empty() ? jumped_ : options_.numbers[jumped_];
  return jump_factor_ > 1 ? fmt::format("rank {} became {:.2f} times slower", rank, jump_factor_)
                          : fmt::format("rank {} became {:.2f} times faster", rank, 1 / jump_factor_);
}

}  // namespace lockstep::balance
