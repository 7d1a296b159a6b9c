#include "exec/gpu_memory.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::exec {

namespace {

std::string size(std::size_t bytes) {
  const auto mebibytes = static_cast<double>(bytes) / (1 << 20);
  return mebibytes < 1024 ? fmt::format("{:.1f} MiB", mebibytes) : fmt::format("{:.1f} GiB", mebibytes / 1024);
}

std::string remedy(std::int64_t shard_samples, int workers) {
  std::string text;
  if (shard_samples > 1) text = fmt::format("more shards (one has {} samples now)", shard_samples);
  if (workers > 1) text += fmt::format("{}threads: {}", text.empty() ? "" : ", or ", workers - 1);
  return text.empty() ? "a smaller model" : text;
}

}  // namespace

void require_gpu_memory(const std::string& gpu, std::size_t free, const std::vector<MemoryNeed>& needs,
                        std::int64_t shard_samples, int workers) {
  std::size_t sum = 0;
  std::string table;
  for (const MemoryNeed& need : needs) {
    const std::size_t bytes = need.each * static_cast<std::size_t>(need.count);
    sum += bytes;
    table += fmt::format("\n  {:<24} {:>12}", need.what, size(bytes));
    if (need.count > 1) table += fmt::format("   {} x {}", need.count, size(need.each));
  }
  if (sum <= free) return;
  throw Error(ExitCode::configuration, fmt::format("{}: expected {} of free memory, found {}; try {}{}", gpu, size(sum),
                                                   size(free), remedy(shard_samples, workers), table));
}

}  // namespace lockstep::exec
