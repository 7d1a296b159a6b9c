#include "config/micro_batches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "core/round_up.hpp"

namespace lockstep::config {
namespace {

constexpr std::int64_t kMaxDefaultMicroBatches = 32;  ///< chosen by default
constexpr std::int64_t kFewMicroBatches = 4;          ///< chosen even if the micro-batches are small

/// The largest divisor of `number` that is at most `most`.
std::int64_t largest_divisor(std::int64_t number, std::int64_t most) {
  for (std::int64_t divisor = std::min(most, number); divisor > 1; --divisor) {
    if (number % divisor == 0) return divisor;
  }
  return 1;
}

}  // namespace

std::int64_t default_micro_batches(std::int64_t batch, MicroBatchWork work) {
  const std::int64_t wanted = work == MicroBatchWork::batch_statistics ? batch / 16
                              : work == MicroBatchWork::samples        ? batch / 8
                                                                       : batch;
  const std::int64_t micro_batches = largest_divisor(batch, std::min(kMaxDefaultMicroBatches, wanted));
  return work == MicroBatchWork::samples && micro_batches < kFewMicroBatches ? largest_divisor(batch, kFewMicroBatches)
                                                                             : micro_batches;
}

std::vector<std::int64_t> near_divisors(std::int64_t batch, std::int64_t wanted) {
  constexpr std::int64_t kMaxTried = 1 << 20;  // bounds the search: above 2^40, an absurd batch, not all divisors are
                                               // found
  std::int64_t below = 1, above = 0;
  for (std::int64_t divisor = 1; divisor <= kMaxTried && divisor <= batch / divisor; ++divisor) {
    if (batch % divisor != 0) continue;
    for (const std::int64_t found : {divisor, batch / divisor}) {
      if (found <= wanted) below = std::max(below, found);
      if (found > wanted && found <= 64 * wanted && (above == 0 || found < above)) above = found;
    }
  }
  return above == 0 ? std::vector{below} : std::vector{below, above};
}

MicroBatchWork micro_batch_work(const Job& job, const Catalogue& catalogue) {
  if (uses_batch_statistics(job.model, catalogue)) return MicroBatchWork::batch_statistics;
  const SourceKind kind = job.data.train.kind;
  return kind == SourceKind::text || kind == SourceKind::tokens ? MicroBatchWork::sequences : MicroBatchWork::samples;
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
  const auto is_fine = [](const std::optional<FinerBatch>& found) {
    return found && found->micro_batches >= kFineEnough;
  };
  if (job.micro_batches >= kFineEnough) return std::nullopt;
  const MicroBatchWork work = micro_batch_work(job, catalogue);
  std::optional<FinerBatch> best;
  for (std::int64_t distance = 0; distance <= job.batch_size / 3 && !is_fine(best); ++distance) {
    for (const std::int64_t batch : {job.batch_size + distance, job.batch_size - distance}) {
      const std::int64_t micro_batches = default_micro_batches(batch, work);
      if (micro_batches > (best ? best->micro_batches : job.micro_batches)) best = FinerBatch{batch, micro_batches};
    }
  }
  return best;
}

std::string explain_micro_batches(const JobFile& job, const Catalogue& catalogue) {
  if (job.places.contains("job.micro_batches") || job.batch_size == 1) return "";
  const std::int64_t batch = job.batch_size;
  if (job.micro_batches == 1) {
    const auto finer = finer_batch(job, catalogue);
    return fmt::format(
        "micro_batches: auto makes one micro-batch of a batch of {}, which one thread of one rank computes{}", batch,
        finer ? fmt::format("; batch_size={} would be {} micro-batches", finer->batch_size, finer->micro_batches) : "");
  }
  std::string text = fmt::format("micro_batches: auto chose {}", job.micro_batches);
  for (const std::int64_t other :
       {largest_divisor(batch, job.micro_batches - 1), near_divisors(batch, job.micro_batches).back()}) {
    if (other == job.micro_batches) continue;
    text += fmt::format("; micro_batches={} would allow {} rank{}, {} work a micro-batch ({} sample{})", other, other,
                        other == 1 ? "" : "s", other < job.micro_batches ? "more" : "less", batch / other,
                        batch / other == 1 ? "" : "s");
  }
  return text;
}

std::int64_t max_parts(const Job& job) {
  if (job.parallel.branches) return std::numeric_limits<int>::max();
  if (!job.parallel.cuts.empty()) return job.parallel.cuts.size();
  std::set<std::string> named;
  for (const LayerOptions& layer : job.model.layers) {
    if (!layer.part.empty()) named.insert(layer.part);
  }
  return std::max(job.parallel.parts, static_cast<std::int64_t>(named.size()));
}

void check_world_size(const JobFile& job, int ranks) {
  const std::int64_t parts = max_parts(job);
  const std::int64_t micro_batches = divide_up<std::int64_t>(ranks, parts);  // enough for all ranks
  if (micro_batches <= job.micro_batches) return;
  const bool by_batch = !job.places.contains("job.micro_batches") && job.places.contains("job.batch_size");
  const Place place = job.place_of(by_batch ? "job.batch_size" : "job.micro_batches");
  const std::string found = parts == 1
                                ? fmt::format("ranks, found {} micro-batches and {} ranks", job.micro_batches, ranks)
                                : fmt::format("ranks of a part, found {} micro-batches, {} parts and {} ranks",
                                              job.micro_batches, parts, ranks);
  throw Problems(
      {{place,
        fmt::format("expected at least as many micro-batches as {}; start at most {} ranks, or set micro_batches to "
                    "a divisor of batch_size {} that is {} or more",
                    found, job.micro_batches * parts, job.batch_size, micro_batches)}});
}

}  // namespace lockstep::config
