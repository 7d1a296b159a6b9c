// balance_sim [events.jsonl ...]: runs the balancer against simulated ranks and prints a table in Markdown. Each file,
// from a run on several ranks, adds a scenario with its recorded speeds.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "simulator/simulator.hpp"

namespace {

using lockstep::balance::Scenario;

// The `micro_batch_seconds` of the run's step events, with as many micro-batches as its start event says.
Scenario read_run(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::vector<double>> seconds;
  int micro_batches = 32;
  std::size_t ranks = 0;
  for (std::string line; std::getline(file, line);) {
    const auto event = nlohmann::json::parse(line);
    if (event.value("event", "") == "start") {
      micro_batches = event.at("micro_batches");
      ranks = event.at("ranks");
    }
    if (!event.contains("micro_batch_seconds")) continue;
    const auto& by_rank = event["micro_batch_seconds"];
    if (by_rank.size() < ranks)
      throw std::runtime_error(path + ": expected steps with the times of all ranks, found some");
    auto& row = seconds.emplace_back();
    for (std::size_t r = 0; r < by_rank.size(); ++r) row.push_back(by_rank.at(std::to_string(r)));
  }
  if (seconds.empty()) throw std::runtime_error(path + ": no step of several ranks in it");
  return lockstep::balance::recorded_scenario(path, micro_batches, std::move(seconds));
}

void print(const Scenario& scenario) {
  const auto outcome = lockstep::balance::simulate(scenario);
  const auto excess = [](double ratio) { return 100 * (ratio - 1); };
  fmt::print("| {} | {} | {} | {} | {:.1f} % | {:.1f} % | {:.1f} % | {:.1f} % | {} | {} |\n", scenario.name,
             scenario.ranks, scenario.micro_batches, scenario.workers, excess(outcome.settled), excess(outcome.overall),
             excess(outcome.equal), excess(outcome.best_static), outcome.moves, outcome.micro_batches_moved);
}

}  // namespace

int main(int argc, char** argv) {
  auto scenarios = lockstep::balance::standard_scenarios();
  for (int i = 1; i < argc; ++i) scenarios.push_back(read_run(argv[i]));
  fmt::print(
      "| scenario | ranks | micro-batches | workers | settled | overall | equal split | best unchanging | moves | "
      "micro-batches "
      "moved |\n|---|---|---|---|---|---|---|---|---|---|\n");
  for (const auto& scenario : scenarios) print(scenario);
}
