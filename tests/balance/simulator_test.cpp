// The balancer in the simulator: how far from the best split of each step, and after how many moves.
#include "simulator/simulator.hpp"

#include <gtest/gtest.h>

#include "comm/reduce/micro_batch_assignment.hpp"

namespace lockstep::balance {
namespace {

// The total number of moves allowed in a scenario. A ramp is followed in steps; a flapping rank is followed until the
// balancer notices that this is useless.
int max_moves(const Scenario& scenario) {
  if (scenario.name == "noise of 10 %") return 0;
  if (scenario.name.starts_with("noise")) return 10;  // in 2000 steps
  if (scenario.name.find("bit by bit") != std::string::npos) return 25;
  if (scenario.name.find("flaps") != std::string::npos) return 20;
  return 6;
}

}  // namespace

TEST(Simulator, StaysNearTheIntegerOptimumWithFewMoves) {
  for (const Scenario& scenario : standard_scenarios()) {
    const SimulationResult outcome = simulate(scenario);
    const std::string what = scenario.name + ", " + std::to_string(scenario.ranks) + " ranks";
    const bool flaps = scenario.name.find("flaps") != std::string::npos;
    // No balancer can follow a rank that flaps; it is then compared with the best split that never changes.
    EXPECT_LE(outcome.settled, 1.05 * (flaps ? outcome.best_static : 1)) << what;
    EXPECT_LE(outcome.moves, max_moves(scenario)) << what;
  }
}

TEST(Simulator, ACalmRecordingMovesNothing) {
  std::vector<std::vector<double>> seconds;
  for (int step = 0; step < 100; ++step) seconds.push_back({0.1 + 0.001 * (step % 7), 0.1 + 0.001 * (step % 5)});
  const SimulationResult outcome = simulate(recorded_scenario("calm", 16, seconds));
  EXPECT_EQ(outcome.moves, 0);
}

TEST(Simulator, ARecordedSlowRankIsFollowed) {
  std::vector<std::vector<double>> seconds;
  for (int step = 0; step < 300; ++step) seconds.push_back({0.1, step < 100 ? 0.1 : 0.2});
  Scenario scenario = recorded_scenario("slow", 12, seconds);
  scenario.unsettled = {85};  // the moving median looks 15 steps ahead
  scenario.settling = 25;
  const SimulationResult outcome = simulate(scenario);
  EXPECT_EQ(outcome.moves, 1);
  EXPECT_LE(outcome.settled, 1.01);
  EXPECT_GT(outcome.equal, 1.3);
}

}  // namespace lockstep::balance
