#include "train/agreed_algorithms.hpp"

#include <sstream>

#include "comm/transport/host_leader.hpp"

namespace lockstep::train {

namespace {

/// Rank 0's, on every rank.
std::vector<std::string> algorithms_of_first_rank(Communicator& communicator, const std::vector<std::string>& own) {
  const Operation operation{.name = "the algorithms of rank 0", .timeout = comm::kStartDeadline};
  std::string text;
  for (const std::string& algorithm : own) text += algorithm + "\n";
  std::uint64_t size = text.size();
  communicator.broadcast(std::as_writable_bytes(std::span(&size, 1)), 0, operation);
  text.resize(size);
  communicator.broadcast(std::as_writable_bytes(std::span(text)), 0, operation);
  std::vector<std::string> algorithms;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) algorithms.push_back(line);
  return algorithms;
}

}  // namespace

std::unique_ptr<exec::Executor> make_with_algorithms_of_first_rank(Communicator& communicator,
                                                                   const MakeExecutor& make) {
  auto executor = make({});
  // Ranks choose at the same time, and all but always the same.
  const auto algorithms = algorithms_of_first_rank(communicator, executor->algorithms());
  if (algorithms == executor->algorithms()) return executor;
  executor.reset();  // its memory is taken again
  return make(algorithms);
}

}  // namespace lockstep::train
