#include "run/plan/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/words.hpp"
#include "observe/telemetry/text.hpp"

namespace lockstep::plan {

namespace {

constexpr double kMebi = 1024.0 * 1024;

std::string mebibytes(std::int64_t bytes) {
  return fmt::format("{:.1f}", bytes / kMebi);
}

std::string milliseconds(double seconds) {
  return fmt::format("{:.2f}", 1e3 * seconds);
}

constexpr std::size_t kMostRows = 16;

using Cells = std::vector<std::string>;

/// Joins consecutive ranks with equal cells into one row: "2-7". The first cell is the rank's number. Where that leaves
/// many rows, all ranks with equal cells are joined: "2-7 and 400 more".
std::vector<Cells> joined(const std::vector<Cells>& of_ranks) {
  std::vector<Cells> rows;
  std::map<Cells, std::pair<std::string, std::size_t>> alike;  // the first of them, and how many more there are
  std::vector<Cells> kinds;
  for (std::size_t first = 0, end = 0; first < of_ranks.size(); first = end) {
    for (end = first; end < of_ranks.size() && of_ranks[end] == of_ranks[first]; ++end) {
    }
    auto& row = rows.emplace_back();
    row.push_back(end - first == 1 ? std::to_string(first) : fmt::format("{}-{}", first, end - 1));
    row.insert(row.end(), of_ranks[first].begin(), of_ranks[first].end());
    const auto [known, is_new] = alike.try_emplace(of_ranks[first], row[0], 0);
    if (is_new) kinds.push_back(of_ranks[first]);
    if (!is_new) known->second.second += end - first;
  }
  if (rows.size() <= kMostRows) return rows;
  rows.clear();
  for (const Cells& cells : kinds) {
    const auto& [first, more] = alike.at(cells);
    auto& row = rows.emplace_back();
    row.push_back(more == 0 ? first : fmt::format("{} and {} more", first, more));
    row.insert(row.end(), cells.begin(), cells.end());
  }
  return rows;
}

}  // namespace

std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = " ";
    for (std::size_t c = 0; c < row.size(); ++c) {
      line += c == 0 ? fmt::format(" {:<{}}", row[c], widths[c]) : fmt::format("  {:>{}}", row[c], widths[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string size_text(std::int64_t bytes) {
  const double mebi = bytes / kMebi;
  return mebi < 1024 ? fmt::format("{:.1f} MiB", mebi) : fmt::format("{:.2f} GiB", mebi / 1024);
}

std::string memory_table(const std::vector<RankMemory>& ranks) {
  std::vector<std::string> heading = {"MiB, rank"};
  std::vector<std::vector<std::string>> cells(ranks.size());
  if (ranks.empty()) return "";
  for (std::size_t kind = 0; kind < ranks.front().kinds().size(); ++kind) {
    const bool some =
        std::any_of(ranks.begin(), ranks.end(), [&](const RankMemory& rank) { return rank.kinds()[kind].second > 0; });
    if (!some) continue;
    heading.push_back(ranks.front().kinds()[kind].first);
    for (std::size_t r = 0; r < ranks.size(); ++r) cells[r].push_back(mebibytes(ranks[r].kinds()[kind].second));
  }
  heading.emplace_back("total");
  for (std::size_t r = 0; r < ranks.size(); ++r) cells[r].push_back(mebibytes(ranks[r].total()));
  auto rows = joined(cells);
  rows.insert(rows.begin(), heading);
  return table_text(rows);
}

std::string time_table(const PlacedModel& placed, const StepTime& time) {
  std::vector<std::vector<std::string>> cells;
  const bool gathers =
      std::any_of(time.ranks.begin(), time.ranks.end(), [](const RankTime& rank) { return rank.parameter_bytes > 0; });
  for (std::size_t r = 0; r < time.ranks.size(); ++r) {
    const RankTime& rank = time.ranks[r];
    auto& row = cells.emplace_back();
    if (placed.is_cut()) row.push_back(std::to_string(placed.part_of_rank[r]));
    row.push_back(std::to_string(placed.micro_batches_of(r).size()));
    for (const double seconds : {rank.compute, rank.waits, rank.reduce, rank.update})
      row.push_back(milliseconds(seconds));
    row.push_back(byte_count(rank.gradient_bytes));
    if (gathers) row.push_back(byte_count(rank.parameter_bytes));
    if (placed.is_cut()) row.push_back(byte_count(rank.activation_bytes));
  }
  auto rows = joined(cells);
  std::vector<std::string> heading = {"ms, rank"};
  if (placed.is_cut()) heading.emplace_back("part");
  for (const char* name : {"micro-batches", "compute", "waiting", "reduction", "update", "gradients sent"}) {
    heading.emplace_back(name);
  }
  if (gathers) heading.emplace_back("parameters sent");
  if (placed.is_cut()) heading.emplace_back("activations sent");
  rows.insert(rows.begin(), heading);
  return table_text(rows);
}

}  // namespace lockstep::plan
