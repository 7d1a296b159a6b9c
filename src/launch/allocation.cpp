#include "launch/allocation.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <vector>

#include "lockstep/error.hpp"

namespace lockstep::launch {

namespace {

constexpr const char *kNodes = "SLURM_JOB_NODELIST", *kTasks = "SLURM_TASKS_PER_NODE";
constexpr std::size_t kMaxHosts = 1'000'000;  ///< more is a mistake, not a cluster

[[noreturn]] void bad(const char* variable, const std::string& expected, const std::string& found) {
  throw Error(ExitCode::usage, fmt::format("{}: expected {}, found '{}'; --hosts a:2,b:2 names the hosts instead",
                                           variable, expected, found));
}

/// Text between commas that are not in brackets.
std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : list) {
    depth += static_cast<int>(c == '[') - (c == ']');
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::optional<std::size_t> number(const std::string& text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "1-3", "007" or "08-11": the numbers, with the zeros of the first.
std::vector<std::string> numbers(const std::string& range, const std::string& list) {
  const auto dash = range.find('-');
  const std::string from = range.substr(0, dash), to = dash == std::string::npos ? from : range.substr(dash + 1);
  const auto first = number(from), last = number(to);
  if (!first || !last || *last < *first || *last - *first >= kMaxHosts) bad(kNodes, "hosts such as a[1-3,07],b", list);
  std::vector<std::string> found;
  for (std::size_t i = *first; i <= *last; ++i) found.push_back(fmt::format("{:0{}}", i, from.size()));
  return found;
}

/// One name with brackets: all names that it stands for.
std::vector<std::string> expanded(const std::string& name, const std::string& list) {
  const auto open = name.find('['), close = name.find(']');
  if (open == std::string::npos && close == std::string::npos) return {name};
  if (open == std::string::npos || close == std::string::npos || close < open) {
    bad(kNodes, "hosts such as a[1-3,07],b", list);
  }
  const std::vector<std::string> endings = expanded(name.substr(close + 1), list);
  std::vector<std::string> found;
  for (const auto& range : split(name.substr(open + 1, close - open - 1))) {
    for (const auto& digits : numbers(range, list)) {
      for (const auto& ending : endings) found.push_back(name.substr(0, open) + digits + ending);
      if (found.size() > kMaxHosts) bad(kNodes, fmt::format("at most {} hosts", kMaxHosts), list);
    }
  }
  return found;
}

/// "2(x3),1": 2, 2, 2, 1.
std::vector<std::size_t> counts(const std::string& list) {
  const char* expected = "tasks such as 2(x3),1";
  std::vector<std::size_t> found;
  for (const auto& part : split(list)) {
    const auto open = part.find("(x");
    const bool repeated = open != std::string::npos && part.back() == ')';
    const auto tasks = number(part.substr(0, open));
    const auto times = repeated ? number(part.substr(open + 2, part.size() - open - 3)) : std::optional<std::size_t>(1);
    const bool whole = repeated == (open != std::string::npos);
    if (!whole || !tasks || !times || *tasks < 1 || *times < 1 || *times > kMaxHosts) bad(kTasks, expected, list);
    found.insert(found.end(), *times, *tasks);
  }
  return found;
}

}  // namespace

bool in_slurm_job() {
  return std::getenv("SLURM_JOB_ID") != nullptr;
}

std::optional<Hosts> allocated_hosts() {
  const char *nodes = std::getenv(kNodes), *tasks = std::getenv(kTasks);
  if (!in_slurm_job() || nodes == nullptr) return std::nullopt;
  return parse_allocation(nodes, tasks == nullptr ? "" : tasks);
}

Hosts parse_allocation(const std::string& nodes, const std::string& tasks) {
  std::vector<std::string> names;
  for (const auto& part : split(nodes)) {
    for (auto& name : expanded(part, nodes)) names.push_back(std::move(name));
  }
  const std::vector<std::size_t> slots = counts(tasks);
  if (slots.size() != names.size()) {
    bad(kTasks, fmt::format("a number for each of the {} hosts of {}", names.size(), kNodes), tasks);
  }
  // The list's own parser checks names and sums.
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) list += fmt::format("{}{}:{}", i == 0 ? "" : ",", names[i], slots[i]);
  return parse_hosts(list, kNodes);
}

}  // namespace lockstep::launch
