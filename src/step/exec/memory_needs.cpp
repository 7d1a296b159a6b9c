#include "step/exec/memory_needs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::exec {

namespace {

std::string size(std::size_t bytes) {
  const auto mebibytes = static_cast<double>(bytes) / (1 << 20);
  return mebibytes < 1024 ? fmt::format("{:.1f} MiB", mebibytes) : fmt::format("{:.1f} GiB", mebibytes / 1024);
}

std::string remedy(const std::vector<MemoryNeed>& needs, std::int64_t micro_batch_samples, int workers) {
  std::vector<std::string> remedies;
  for (const MemoryNeed& need : needs) {
    const bool known = std::find(remedies.begin(), remedies.end(), need.remedy) != remedies.end();
    if (!need.remedy.empty() && !known) remedies.push_back(need.remedy);
  }
  if (micro_batch_samples > 1)
    remedies.push_back(fmt::format("more micro-batches (one has {} samples now)", micro_batch_samples));
  if (workers > 1) remedies.push_back(fmt::format("threads: {}", workers - 1));
  return remedies.empty() ? "a smaller model" : fmt::format("{}", fmt::join(remedies, ", or "));
}

}  // namespace

std::size_t bytes_of(const std::vector<MemoryNeed>& needs) {
  std::size_t sum = 0;
  for (const MemoryNeed& need : needs) sum += need.each * need.count;
  return sum;
}

void require_memory(const std::string& gpu, std::size_t free, const std::vector<MemoryNeed>& needs,
                    std::int64_t micro_batch_samples, int workers) {
  const std::size_t sum = bytes_of(needs);
  if (sum <= free) return;
  std::string table;
  for (const MemoryNeed& need : needs) {
    table += fmt::format("\n  {:<24} {:>12}", need.what, size(bytes_of({need})));
    if (need.count > 1) table += fmt::format("   {} x {}", need.count, size(need.each));
  }
  throw Error(ExitCode::configuration, fmt::format("{}: expected {} of free memory, found {}; try {}{}", gpu, size(sum),
                                                   size(free), remedy(needs, micro_batch_samples, workers), table));
}

}  // namespace lockstep::exec
