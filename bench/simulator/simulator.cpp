#include "simulator/simulator.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "comm/reduce/micro_batch_assignment.hpp"
#include "core/median.hpp"
#include "lockstep/random.hpp"
#include "step/balance/split.hpp"

namespace lockstep::balance {

namespace {

constexpr int kLatency = 2;     // steps from a measurement until the new split takes effect
constexpr int kIdleTries = 16;  // a rank without a share computes one micro-batch every so many steps, as a probe

bool same_seconds(const std::vector<RankCost>& a, const std::vector<RankCost>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const RankCost& x, const RankCost& y) {
    return x.seconds_per_micro_batch == y.seconds_per_micro_batch;
  });
}

class Simulation {
 public:
  explicit Simulation(const Scenario& scenario)
      : scenario_(scenario),
        random_(scenario.seed, 0),
        counts_(comm::equal_counts(scenario.micro_batches, scenario.ranks)),
        assignment_(comm::place_micro_batches(counts_)) {}

  SimulationResult run();

 private:
  [[nodiscard]] std::vector<RankCost> truth(int step) const;
  [[nodiscard]] RankMeasure measure(int rank, int step, double fixed);
  [[nodiscard]] double draw(double seconds);
  [[nodiscard]] bool settled(int step) const;
  void move(const std::vector<int>& counts);

  const Scenario& scenario_;
  RandomStream random_;
  std::vector<int> counts_;
  comm::MicroBatchAssignment assignment_;
  SimulationResult result_;
};

std::vector<RankCost> Simulation::truth(int step) const {
  std::vector<RankCost> ranks;
  for (int r = 0; r < scenario_.ranks; ++r) {
    const double seconds = scenario_.seconds_per_micro_batch(r, step);
    const double slower = seconds / scenario_.seconds_per_micro_batch(r, 0);
    ranks.push_back({seconds, scenario_.fixed * slower, scenario_.workers, scenario_.micro_batches});
  }
  return ranks;
}

double Simulation::draw(double seconds) {
  double normal = -6;  // the sum of twelve uniform numbers is close enough to a normal one
  for (int i = 0; i < 12; ++i) normal += static_cast<double>(to_unit(random_.word()));
  const bool hiccup = static_cast<double>(to_unit(random_.word())) < scenario_.hiccup;
  return seconds * std::exp(scenario_.noise * normal) * (hiccup ? scenario_.hiccup_factor : 1);
}

// `reduce` of the result is the time until the rank's last micro-batch is done; run() converts it to waiting.
RankMeasure Simulation::measure(int rank, int step, double fixed) {
  const int share = counts_[static_cast<std::size_t>(rank)];
  const int micro_batches = share > 0 ? share : step % kIdleTries == 0 ? 1 : 0;
  const double seconds =
      scenario_.measured ? scenario_.measured(rank, step) : scenario_.seconds_per_micro_batch(rank, step);
  RankMeasure measure;
  measure.micro_batches = micro_batches;
  measure.fixed = draw(fixed);
  std::vector<double> times, free_at(static_cast<std::size_t>(scenario_.workers), 0);
  for (int i = 0; i < micro_batches; ++i) {
    times.push_back(draw(seconds));
    measure.compute += times.back();
    *std::min_element(free_at.begin(), free_at.end()) += times.back();
  }
  measure.reduce = measure.fixed + (share > 0 ? *std::max_element(free_at.begin(), free_at.end()) : 0);
  measure.typical = median(std::move(times));
  return measure;
}

bool Simulation::settled(int step) const {
  return std::none_of(scenario_.unsettled.begin(), scenario_.unsettled.end(),
                      [&](int from) { return step >= from && step < from + scenario_.settling; });
}

void Simulation::move(const std::vector<int>& counts) {
  const comm::MicroBatchAssignment before = assignment_;
  assignment_ = comm::place_micro_batches(counts, before);
  counts_ = counts;
  ++result_.moves;
  result_.micro_batches_moved += comm::micro_batches_moved(before, assignment_);
}

SimulationResult Simulation::run() {
  Balancer balancer({.micro_batches = scenario_.micro_batches,
                     .workers = std::vector<int>(counts_.size(), scenario_.workers),
                     .max_micro_batches = std::vector<int>(counts_.size(), scenario_.micro_batches)},
                    counts_);
  const auto equal = counts_;
  std::vector<RankCost> before;
  double best_now = 0, best = 0, settled_best = 0, mine = 0, settled_mine = 0, settled_equal = 0;
  std::vector<double> mean(counts_.size(), 0);
  std::vector<std::vector<RankCost>> settled_truth;
  std::optional<std::pair<int, std::vector<int>>> due;
  for (int step = 0; step < scenario_.steps; ++step) {
    if (due && due->first == step) move(due->second), due.reset();
    const auto ranks = truth(step);
    if (step == 0 || !same_seconds(ranks, before)) {
      best_now = step_seconds(ranks, best_split(ranks, scenario_.micro_batches, scenario_.reduce), scenario_.reduce);
    }
    before = ranks;
    const double now = step_seconds(ranks, counts_, scenario_.reduce);
    best += best_now, mine += now;
    if (settled(step)) {
      settled_best += best_now, settled_mine += now;
      settled_equal += step_seconds(ranks, equal, scenario_.reduce);
      for (std::size_t r = 0; r < mean.size(); ++r) mean[r] += ranks[r].seconds_per_micro_batch;
      settled_truth.push_back(ranks);
    }

    std::vector<RankMeasure> measures;
    double last = 0;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      measures.push_back(measure(static_cast<int>(r), step, ranks[r].fixed_seconds));
      last = std::max(last, measures.back().reduce);
    }
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const double sums = rank_seconds({}, counts_[r], scenario_.reduce);
      measures[r].reduce = last - measures[r].reduce + draw(sums);
    }
    if (auto decision = balancer.observe(counts_, measures, last)) due = {step + kLatency, decision->counts};
  }
  // Used as the best static split: the best split for the mean speeds.
  auto ranks = settled_truth.front();
  for (std::size_t r = 0; r < mean.size(); ++r) {
    ranks[r].seconds_per_micro_batch = mean[r] / static_cast<double>(settled_truth.size());
  }
  const auto unchanging = best_split(ranks, scenario_.micro_batches, scenario_.reduce);
  double settled_static = 0;
  for (const auto& then : settled_truth) settled_static += step_seconds(then, unchanging, scenario_.reduce);
  result_.settled = settled_mine / settled_best;
  result_.overall = mine / best;
  result_.equal = settled_equal / settled_best;
  result_.best_static = settled_static / settled_best;
  return result_;
}

}  // namespace

SimulationResult simulate(const Scenario& scenario) {
  return Simulation(scenario).run();
}

}  // namespace lockstep::balance
