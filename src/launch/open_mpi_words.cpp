#include "launch/open_mpi_words.hpp"

#include <fmt/format.h>

#include <fstream>
#include <regex>
#include <sstream>

namespace lockstep::launch {

namespace {

constexpr std::size_t kDashes = 60;        ///< at least, in the lines around a block
constexpr std::size_t kMostBytes = 65536;  ///< of its words that are kept; the first explain the others
constexpr int kMostLines = 12;

bool is_rule(std::string_view line) {
  return line.size() >= kDashes && line.find_first_not_of('-') == std::string_view::npos;
}

// That a rank ended with a code, which it did on purpose; that others have lost it; or nothing.
bool is_summary(const std::string& block) {
  return block.empty() || block.find("non-zero") != std::string::npos || block.find("exited on") != std::string::npos ||
         block.find("has unexpectedly disconnected") != std::string::npos;
}

// What is said beside the words of a block.
bool is_noise(std::string_view line) {
  return line.find("help message") != std::string_view::npos || line.find("orwarding signal") != std::string_view::npos;
}

bool has_prefix(std::string_view line) {
  if (line.starts_with("mpirun: ") || line.starts_with("prterun: ")) return true;  // "Forwarding signal 10 to job"
  const std::size_t close = line.find("] ");
  if (!line.starts_with('[') || close == std::string_view::npos) return false;
  const std::string_view inside = line.substr(1, close - 1);
  const std::size_t colon = inside.rfind(':');
  return colon != std::string_view::npos && colon > 0 && colon + 1 < inside.size() &&
         inside.find_first_not_of("0123456789", colon + 1) == std::string_view::npos &&
         inside.find(' ') == std::string_view::npos;
}

/// The first block that explains something, or the lines where there are no blocks.
std::string first_of(const std::string& text) {
  std::istringstream lines(text);
  std::string block;
  int count = 0;
  for (std::string line; count < kMostLines && std::getline(lines, line);) {
    if (is_rule(line)) {
      if (!is_summary(block)) break;
      block.clear();
      count = 0;
    } else if (!is_noise(line) && line.find_first_not_of(" \t") != std::string::npos) {
      block += "\n  " + line;
      ++count;
    }
  }
  return is_summary(block) ? "" : block;
}

}  // namespace

bool OpenMpiWords::take(std::string_view line) {
  const bool of_rank = line.starts_with("lockstep: ");
  spoken_ = spoken_ || of_rank;
  const bool rule = is_rule(line);
  if (!rule && !has_prefix(line) && (!in_block_ || of_rank)) return true;
  if (rule) in_block_ = !in_block_;
  std::string& text = rule || in_block_ ? blocks_ : lines_;
  if (text.size() < kMostBytes) text.append(line).append("\n");
  return false;
}

std::string OpenMpiWords::death(int rank) const {
  const std::regex sentence(R"(process rank (\d+) with PID \S+ on node (\S+) exited on\s+signal (\d+) \(([^)]*)\))");
  for (std::sregex_iterator at(blocks_.begin(), blocks_.end(), sentence), end; at != end; ++at) {
    const std::smatch& found = *at;
    if (rank < 0) return fmt::format("rank {} was killed by signal {} ({})", found.str(1), found.str(3), found.str(4));
    if (std::to_string(rank) == found.str(1))
      return fmt::format("killed by signal {} ({})", found.str(3), found.str(4));
  }
  return "";
}

std::optional<OpenMpiWords::Death> OpenMpiWords::first_death() const {
  std::smatch found;
  if (std::regex_search(blocks_, found, std::regex(R"(process rank (\d+) with PID)"))) {
    const int rank = std::stoi(found.str(1));
    return Death{rank, death(rank)};
  }
  if (std::regex_search(blocks_, found, std::regex(R"(Process name: \[\[[\d,]+\],(\d+)\]\s+Exit code:\s+(\d+))"))) {
    return Death{std::stoi(found.str(1)), "ended with " + found.str(2)};
  }
  return std::nullopt;
}

std::string OpenMpiWords::host_without_program() const {
  const std::regex sentence(
      R"((?:find the specified executable|access\s+or execute an executable)[\s\S]{0,600}?Node:\s+(\S+))");
  std::smatch found;
  return std::regex_search(blocks_, found, sentence) ? found.str(1) : "";
}

std::string OpenMpiWords::first_block() const {
  const std::string block = first_of(blocks_);
  return block.empty() ? first_of(lines_) : block;
}

OpenMpiWords open_mpi_words_in(const std::string& path) {
  OpenMpiWords words;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) (void)words.take(line);
  return words;
}

}  // namespace lockstep::launch
