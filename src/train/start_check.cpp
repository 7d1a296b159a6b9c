#include "train/start_check.hpp"

#include <fmt/format.h>

#include <cstring>
#include <map>

#include "core/digest.hpp"
#include "lockstep/error.hpp"

namespace lockstep::train {

namespace {

constexpr std::size_t kWidth = 64;

std::string at(const std::string& table, std::size_t row) {
  const std::string cell = table.substr(row * kWidth, kWidth);
  return cell.substr(0, cell.find('\0'));
}

std::string most_common(const std::vector<std::string>& values) {
  std::map<std::string, int> counts;
  for (const auto& value : values) ++counts[value];
  const std::string* best = &values.front();  // a tie goes to rank 0
  for (const auto& [value, count] : counts) {
    if (count > counts[*best]) best = &value;
  }
  return *best;
}

}  // namespace

std::vector<std::string> compare_start(const std::vector<StartFact>& facts, bool exact_required,
                                       Communicator& communicator, std::chrono::milliseconds timeout) {
  std::string mine;
  for (const auto& fact : facts) {
    std::string cell = fact.value.size() < kWidth ? fact.value : sha256(fact.value).substr(0, kWidth - 1);
    cell.resize(kWidth, '\0');
    mine += cell;
  }
  const auto ranks = static_cast<std::size_t>(communicator.size());
  std::string all(mine.size() * ranks, '\0');
  communicator.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)),
                          {"start", 0, timeout});

  const Topology& topology = communicator.topology();
  std::vector<std::string> warnings;
  for (std::size_t f = 0; f < facts.size(); ++f) {
    std::vector<std::string> values;
    for (std::size_t r = 0; r < ranks; ++r) values.push_back(at(all, r * facts.size() + f));
    const std::string expected = most_common(values);
    for (std::size_t r = 0; r < ranks; ++r) {
      if (values[r] == expected) continue;
      const std::string& host = topology.host_names.at(static_cast<std::size_t>(topology.host_of.at(r)));
      const std::string message = fmt::format("rank {} on {}: its {} differs: expected {}, found {}; {}", r, host,
                                              facts[f].name, expected, values[r], facts[f].remedy);
      if (exact_required || !facts[f].bits_only) throw Error(ExitCode::usage, message);
      warnings.push_back(message);
    }
  }
  return warnings;
}

}  // namespace lockstep::train
