// The scenarios of the simulator.
#include <algorithm>
#include <cmath>

#include "core/median.hpp"
#include "simulator/simulator.hpp"

namespace lockstep::balance {

namespace {

constexpr double kMicroBatch = 0.05;  // seconds
constexpr int kMedianReach = 15;      // steps before and after, for the moving median of a recording

Scenario named(const std::string& name, int ranks, int micro_batches, std::function<double(int, int)> seconds) {
  Scenario scenario;
  scenario.name = name;
  scenario.ranks = ranks;
  scenario.micro_batches = micro_batches;
  scenario.noise = 0.1;
  scenario.unsettled = {0};
  scenario.seconds_per_micro_batch = std::move(seconds);
  return scenario;
}

double same(int /*rank*/, int /*step*/) {
  return kMicroBatch;
}

/// One rank runs at half its speed from a step on.
std::function<double(int, int)> slow_from(int slow_rank, int from, double factor) {
  return [=](int rank, int step) { return rank == slow_rank && step >= from ? factor * kMicroBatch : kMicroBatch; };
}

Scenario noisy(const std::string& name, int ranks, int micro_batches, double noise, double hiccup) {
  auto scenario = named(name, ranks, micro_batches, same);
  scenario.noise = noise;
  scenario.hiccup = hiccup;
  scenario.steps = 2000;
  return scenario;
}

Scenario step_change(int ranks, int micro_batches, int workers, double factor) {
  auto scenario = named("one rank slows down to 1/" + std::to_string(static_cast<int>(factor)), ranks, micro_batches,
                        slow_from(ranks / 2, 100, factor));
  scenario.workers = workers;
  scenario.unsettled = {0, 100};
  return scenario;
}

Scenario ramp(int ranks, int micro_batches) {
  return named("one rank slows down bit by bit, to a third", ranks, micro_batches, [](int rank, int step) {
    return rank == 1 ? kMicroBatch * (1 + 2 * std::clamp((step - 50) / 200.0, 0.0, 1.0)) : kMicroBatch;
  });
}

Scenario flapping(int ranks, int micro_batches, int half_period) {
  auto scenario = named("one rank flaps, " + std::to_string(half_period) + " steps each", ranks, micro_batches,
                        [half_period](int rank, int step) {
                          return rank == 0 && step / half_period % 2 == 1 ? 2 * kMicroBatch : kMicroBatch;
                        });
  scenario.steps = 2000;
  return scenario;
}

/// Four generations of devices, each 1.6 times as fast as the one before.
Scenario generations(int ranks, int micro_batches) {
  return named("four generations", ranks, micro_batches,
               [](int rank, int /*step*/) { return kMicroBatch / std::pow(1.6, rank % 4); });
}

}  // namespace

std::vector<Scenario> standard_scenarios() {
  return {noisy("noise of 10 %", 4, 32, 0.1, 0),
          noisy("noise of 30 %, hiccups", 4, 32, 0.3, 0.005),
          noisy("noise of 10 %", 16, 256, 0.1, 0),
          noisy("noise of 30 %, hiccups", 64, 512, 0.3, 0.005),
          noisy("noise of 10 %", 256, 2048, 0.1, 0),
          step_change(4, 32, 1, 2),
          step_change(8, 64, 1, 2),
          step_change(4, 64, 4, 2),
          step_change(16, 256, 1, 3),
          step_change(64, 512, 1, 2),
          step_change(256, 2048, 1, 2),
          ramp(4, 64),
          ramp(16, 256),
          flapping(4, 32, 5),
          flapping(4, 32, 20),
          flapping(8, 64, 100),
          generations(4, 32),
          generations(8, 64),
          generations(64, 512),
          generations(256, 2048)};
}

Scenario recorded_scenario(const std::string& name, int micro_batches, std::vector<std::vector<double>> seconds) {
  std::vector<std::vector<double>> smooth = seconds;
  for (std::size_t step = 0; step < seconds.size(); ++step) {
    const std::size_t from = step > kMedianReach ? step - kMedianReach : 0;
    const std::size_t end = std::min(seconds.size(), step + kMedianReach + 1);
    for (std::size_t r = 0; r < seconds[step].size(); ++r) {
      std::vector<double> near;
      for (std::size_t i = from; i < end; ++i) near.push_back(seconds[i].at(r));
      smooth[step][r] = median(std::move(near));
    }
  }
  const auto play = [](std::vector<std::vector<double>> recording) {
    return [recording = std::move(recording)](int rank, int step) {
      return recording[static_cast<std::size_t>(step) % recording.size()][static_cast<std::size_t>(rank)];
    };
  };
  auto scenario = named(name, static_cast<int>(seconds.at(0).size()), micro_batches, play(std::move(smooth)));
  scenario.steps = std::max(300, static_cast<int>(seconds.size()));
  scenario.noise = 0;
  scenario.measured = play(std::move(seconds));
  return scenario;
}

}  // namespace lockstep::balance
