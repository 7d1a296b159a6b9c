#include "data/readers/bad_samples.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::data {

std::string describe(const std::vector<std::string>& paths) {
  if (paths.empty()) return "no path";
  return paths.size() == 1 ? paths.front() : fmt::format("{} and {} more", paths.front(), paths.size() - 1);
}

void judge_bad_samples(const SourceOptions& source, const std::vector<std::string>& faults, std::size_t samples) {
  if (faults.empty() || source.bad_samples == BadWhenIndexed::skip) return;
  constexpr std::size_t kNamed = 3;
  std::string list;
  for (std::size_t i = 0; i < std::min(faults.size(), kNamed); ++i) list += (i > 0 ? "; " : "") + faults[i];
  if (faults.size() > kNamed) list += fmt::format("; and {} more", faults.size() - kNamed);
  throw Error(ExitCode::data,
              fmt::format("{}: {} of {} samples {} bad: {}. Repair or remove them, or say "
                          "`bad_samples: skip`",
                          describe(source.paths), faults.size(), samples, faults.size() == 1 ? "is" : "are", list));
}

}  // namespace lockstep::data
