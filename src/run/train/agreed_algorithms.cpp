#include "run/train/agreed_algorithms.hpp"

#include <algorithm>
#include <map>
#include <sstream>

#include "comm/transport/host_leader.hpp"
#include "comm/transport/point_to_point.hpp"

namespace lockstep::train {

namespace {

/// Rank `from`'s algorithms, on every rank.
std::vector<std::string> algorithms_of_rank(Communicator& communicator, int from, const std::vector<std::string>& own) {
  const Operation operation{.name = "the algorithms of a rank", .timeout = comm::kStartDeadline};
  std::string text;
  for (const std::string& algorithm : own) text += algorithm + "\n";
  std::vector<std::string> algorithms;
  std::istringstream lines(comm::broadcast_text(communicator, std::move(text), from, operation));
  for (std::string line; std::getline(lines, line);) algorithms.push_back(line);
  return algorithms;
}

}  // namespace

std::unique_ptr<exec::Executor> make_with_algorithms_of_first_rank(Communicator& communicator,
                                                                   const MakeExecutor& make) {
  auto executor = make({});
  // Ranks choose concurrently, and nearly always choose the same.
  const auto algorithms = algorithms_of_rank(communicator, 0, executor->algorithms());
  if (algorithms == executor->algorithms()) return executor;
  executor.reset();  // frees its memory first
  return make(algorithms);
}

std::vector<std::string> algorithms_of_all_parts(const ModelParts& parts, const exec::Executor& executor,
                                                 Communicator& communicator) {
  if (!parts.is_cut()) return executor.algorithms();
  std::map<std::int32_t, std::string> all;  // by node of the whole graph
  for (int p = 0; p < parts.count(); ++p) {
    const GraphPart& part = parts.part(p);
    auto of_part = algorithms_of_rank(communicator, parts.ranks()[p].front(),
                                      p == parts.own() ? executor.algorithms() : std::vector<std::string>());
    if (p == parts.own()) of_part = executor.algorithms();
    for (std::size_t n = 0; n < part.nodes.size(); ++n) {
      const std::string begin = exec::layer_label(part.graph.nodes[n]) + ": ";
      const auto found = std::find_if(of_part.begin(), of_part.end(),
                                      [&](const std::string& of_layer) { return of_layer.starts_with(begin); });
      if (found != of_part.end()) all[part.nodes[n]] = *found;
    }
  }
  std::vector<std::string> list;
  for (const auto& [node, algorithm] : all) list.push_back(algorithm);
  return list;
}

}  // namespace lockstep::train
