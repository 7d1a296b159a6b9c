#include "train/agreed_plans.hpp"

#include <sstream>

#include "train/host_leader.hpp"

namespace lockstep::train {

std::vector<std::string> plans_of_first_rank(const RunContext& run, const std::vector<std::string>& own) {
  const Operation operation{.name = "the plans of rank 0", .timeout = kStartDeadline};
  std::string text;
  for (const std::string& plan : own) text += plan + "\n";
  std::uint64_t size = text.size();
  run.communicator.broadcast(std::as_writable_bytes(std::span(&size, 1)), 0, operation);
  text.resize(size);
  run.communicator.broadcast(std::as_writable_bytes(std::span(text)), 0, operation);
  std::vector<std::string> plans;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) plans.push_back(line);
  return plans;
}

}  // namespace lockstep::train
