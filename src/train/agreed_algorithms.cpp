#include "train/agreed_algorithms.hpp"

#include <sstream>

#include "comm/reduce/host_leader.hpp"

namespace lockstep::train {

namespace {

/// Rank 0's, on every rank.
std::vector<std::string> plans_of_first_rank(Communicator& communicator, const std::vector<std::string>& own) {
  const Operation operation{.name = "the plans of rank 0", .timeout = comm::kStartDeadline};
  std::string text;
  for (const std::string& plan : own) text += plan + "\n";
  std::uint64_t size = text.size();
  communicator.broadcast(std::as_writable_bytes(std::span(&size, 1)), 0, operation);
  text.resize(size);
  communicator.broadcast(std::as_writable_bytes(std::span(text)), 0, operation);
  std::vector<std::string> plans;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) plans.push_back(line);
  return plans;
}

}  // namespace

std::unique_ptr<exec::Executor> make_with_plans_of_first_rank(Communicator& communicator, const MakeExecutor& make) {
  auto executor = make({});
  // Ranks choose at the same time, and all but always the same.
  const auto plans = plans_of_first_rank(communicator, executor->plans());
  if (plans == executor->plans()) return executor;
  executor.reset();  // its memory is taken again
  return make(plans);
}

}  // namespace lockstep::train
