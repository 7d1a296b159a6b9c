#include "config/shards.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::config {
namespace {

constexpr std::int64_t kMostShards = 32;  ///< that are chosen by default

}  // namespace

std::int64_t default_shards(std::int64_t batch, bool batch_statistics) {
  constexpr std::int64_t kLeastSamples = 16;
  for (std::int64_t shards = std::min(kMostShards, batch); shards > 1; --shards) {
    if (batch % shards == 0 && (!batch_statistics || batch / shards >= kLeastSamples)) return shards;
  }
  return 1;
}

std::vector<std::int64_t> near_divisors(std::int64_t batch, std::int64_t wanted) {
  constexpr std::int64_t kMostTried = 1 << 20;  // of batches above 2^40, absurd ones, it need not find all
  std::int64_t below = 1, above = 0;
  for (std::int64_t divisor = 1; divisor <= kMostTried && divisor <= batch / divisor; ++divisor) {
    if (batch % divisor != 0) continue;
    for (const std::int64_t found : {divisor, batch / divisor}) {
      if (found <= wanted) below = std::max(below, found);
      if (found > wanted && found <= 64 * wanted && (above == 0 || found < above)) above = found;
    }
  }
  return above == 0 ? std::vector{below} : std::vector{below, above};
}

bool uses_batch_statistics(const ModelOptions& model, const Catalogue& catalogue) {
  const auto flagged = [](const std::vector<NamedAttributes>& known, const std::string& name) {
    return std::any_of(known.begin(), known.end(),
                       [&](const NamedAttributes& entry) { return entry.batch_statistics && entry.name == name; });
  };
  if (!model.zoo.empty()) return flagged(catalogue.models, model.zoo);
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [&](const LayerOptions& layer) { return flagged(catalogue.layers, layer.op); });
}

std::optional<FinerBatch> finer_batch(const Job& job, const Catalogue& catalogue) {
  constexpr std::int64_t kFineEnough = 8;
  const auto is_finest = [](const std::optional<FinerBatch>& found) { return found && found->shards == kMostShards; };
  if (job.shards >= kFineEnough) return std::nullopt;
  const bool statistics = uses_batch_statistics(job.model, catalogue);
  std::optional<FinerBatch> best;
  for (std::int64_t distance = 0; distance <= job.batch_size / 3 && !is_finest(best); ++distance) {
    for (const std::int64_t batch : {job.batch_size + distance, job.batch_size - distance}) {
      const std::int64_t shards = default_shards(batch, statistics);
      if (shards > (best ? best->shards : job.shards)) best = FinerBatch{batch, shards};
    }
  }
  return best;
}

void check_world_size(const Job& job, int ranks) {
  if (ranks <= job.shards) return;
  const auto written = job.places.find("job.shards");
  const auto batch = job.places.find("job.batch_size");
  Place place = written != job.places.end() ? written->second : Place{.path = "job.shards"};
  if (written == job.places.end() && batch != job.places.end()) place = batch->second;
  throw Problems(
      {{place, fmt::format("expected at least as many shards as ranks, found {} shards and {} ranks; start "
                           "at most {} ranks, or set shards to a divisor of batch_size {} that is {} or more",
                           job.shards, ranks, job.shards, job.batch_size, ranks)}});
}

}  // namespace lockstep::config
