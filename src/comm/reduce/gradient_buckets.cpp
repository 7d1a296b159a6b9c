#include "comm/reduce/gradient_buckets.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "core/round_up.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

/// Where slices may begin and end.
class Cuts {
 public:
  Cuts(const GradientBuckets::Bucket& bucket, int ranks) : elements_(bucket.elements), ranks_(ranks) {
    LOCKSTEP_CHECK(std::is_sorted(bucket.cuts.begin(), bucket.cuts.end()), "cuts must ascend");
    for (const std::int64_t cut : bucket.cuts) {
      if (cut > allowed_.back() && cut < elements_) allowed_.push_back(cut);
    }
    if (elements_ > 0) allowed_.push_back(elements_);
  }

  /// Where the slice of this rank begins: the cut nearest to its equal share; in a tie, the lower one. Fast for a rank
  /// near that of the call before.
  [[nodiscard]] std::int64_t start(int rank) {
    if (rank == ranks_) return elements_;
    const double ideal = static_cast<double>(elements_) * rank / ranks_;
    const auto is_below = [&](std::size_t i) { return allowed_[i] < ideal; };
    std::size_t low = above_, high = above_;  // the first cut that is not below the ideal is in [low, high]
    for (std::size_t step = 1; low > 0 && !is_below(low - 1); step *= 2) low -= std::min(step, low);
    for (std::size_t step = 1; high < allowed_.size() && is_below(high); step *= 2) {
      low = high + 1;
      high = std::min(high + step, allowed_.size());
    }
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (is_below(middle)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    above_ = low;
    if (above_ == 0) return allowed_.front();
    if (above_ == allowed_.size()) return allowed_.back();
    const auto distance = [&](std::int64_t cut) { return std::abs(cut - ideal); };
    return distance(allowed_[above_ - 1]) <= distance(allowed_[above_]) ? allowed_[above_ - 1] : allowed_[above_];
  }

 private:
  std::int64_t elements_;
  int ranks_;
  std::vector<std::int64_t> allowed_ = {0};
  std::size_t above_ = 0;  ///< found by the last call
};

}  // namespace

void GradientBuckets::Bucket::append(std::int64_t tensor_elements, bool uncut) {
  const std::int64_t step = uncut ? std::max(tensor_elements, kChunkElements) : kChunkElements;
  for (std::int64_t at = 0; at < tensor_elements; at += step) cuts.push_back(elements + at);
  elements += tensor_elements;
}

GradientBuckets GradientBuckets::of_slots(std::span<const SlotShape> shapes, std::int64_t bucket_bytes,
                                          int micro_batches) {
  GradientBuckets all{.buckets = {}, .micro_batches = micro_batches};
  std::map<int, std::int32_t> turn_of;  // by SlotShape::alike
  const auto must_close = [&](const SlotShape& shape, std::size_t slot) {
    const Bucket& last = all.buckets.back();
    return last.elements * static_cast<std::int64_t>(sizeof(float)) >= bucket_bytes || shape.alike >= 0 ||
           shapes[slot - 1].alike >= 0 || last.scattered != shape.scattered;
  };
  for (const SlotShape& shape : shapes) {
    const std::size_t slot = all.slots.size();
    if (all.buckets.empty() || must_close(shape, slot)) {
      const std::int32_t number = all.buckets.size();
      Bucket& next = all.buckets.emplace_back();
      next.first_slot = slot;
      next.scattered = shape.scattered;
      if (shape.alike >= 0) next.turn = turn_of.try_emplace(shape.alike, number).first->second;
    }
    Bucket& bucket = all.buckets.back();
    all.slots.push_back({static_cast<std::int32_t>(all.buckets.size() - 1), bucket.elements});
    bucket.append(shape.elements, shape.uncut);
    bucket.elements = whole_lines(bucket.elements);
    bucket.last_slot = static_cast<std::int32_t>(slot) + 1;
  }
  return all;
}

namespace {

/// Where tensors begin if no multiple of `slice` is within a chunk: a tensor that would be cut there begins later, so
/// that a chunk ends where the slice does. `uncut` tensors are within a slice.
std::vector<std::int64_t> starts_around_cuts(std::span<const GradientBuckets::SlotShape> tensors, std::int64_t slice) {
  std::vector<std::int64_t> starts;
  std::int64_t next = 0;
  for (const auto& [elements, scattered, alike, uncut] : tensors) {
    const std::int64_t end_of_slice = (next / slice + 1) * slice, room = end_of_slice - next;
    if (elements > room) next = uncut ? end_of_slice : end_of_slice - room / kChunkElements * kChunkElements;
    starts.push_back(next);
    next += whole_lines(elements);
  }
  starts.push_back(next);
  return starts;
}

}  // namespace

void GradientBuckets::make_slices_equal(std::span<const SlotShape> shapes, int ranks) {
  constexpr std::int64_t kSmall = (std::int64_t{1} << 20) / static_cast<std::int64_t>(sizeof(float));
  for (Bucket& bucket : buckets) {
    const std::size_t first = bucket.first_slot, count = bucket.last_slot - first;
    const auto tensors = shapes.subspan(first, count);
    if (bucket.scattered || bucket.elements == 0) continue;
    std::int64_t slice = round_up(divide_up<std::int64_t>(bucket.elements, ranks), kChunkElements);
    for (const SlotShape& tensor : tensors) {
      if (tensor.uncut) slice = std::max(slice, round_up(tensor.elements, kChunkElements));
    }
    std::vector<std::int64_t> starts = starts_around_cuts(tensors, slice);
    for (; starts.back() > slice * ranks; starts = starts_around_cuts(tensors, slice)) slice += kChunkElements;
    if (slice * ranks - bucket.elements > std::max(kSmall, bucket.elements / 4)) continue;
    bucket.cuts.clear();
    for (std::size_t i = 0; i < count; ++i) {
      slots[first + i].offset = bucket.elements = starts[i];
      bucket.append(tensors[i].elements, tensors[i].uncut);
    }
    bucket.elements = slice * ranks;
    for (int rank = 1; rank < ranks; ++rank) bucket.cuts.push_back(rank * slice);
    std::sort(bucket.cuts.begin(), bucket.cuts.end());
  }
}

std::int64_t GradientBuckets::elements() const {
  std::int64_t sum = 0;
  for (const Bucket& bucket : buckets) sum += bucket.elements;
  return sum;
}

std::int64_t GradientBuckets::max_elements() const {
  std::int64_t max = 0;
  for (const Bucket& bucket : buckets) max = std::max(max, bucket.elements);
  return max;
}

GradientBuckets::Bucket bucket_of(std::span<const std::int64_t> tensor_elements) {
  GradientBuckets::Bucket bucket;
  for (const std::int64_t elements : tensor_elements) bucket.append(elements);
  return bucket;
}

std::vector<std::int64_t> slice_bounds(const GradientBuckets::Bucket& bucket, int ranks) {
  Cuts allowed(bucket, ranks);
  std::vector<std::int64_t> bounds;
  for (int r = 0; r <= ranks; ++r) bounds.push_back(allowed.start(r));
  return bounds;
}

std::vector<Slice> slices_of(const GradientBuckets& buckets, int bucket, int ranks) {
  const std::int64_t elements = buckets.at(bucket).elements;
  Cuts allowed(buckets.at(bucket), ranks);
  std::vector<Slice> slices;
  std::int64_t first = allowed.start(0);
  for (int rank = 0; rank < ranks && first != elements;) {
    // If several ranks would begin here, the last one gets the slice. A binary search finds it, in a range that is as
    // small as there are few of them.
    int low = rank, high = rank + 1;
    std::int64_t end = allowed.start(high);
    for (; end == first && high < ranks; end = allowed.start(high)) {
      low = high;
      high = std::min(ranks, low + 2 * (low - rank));
    }
    while (high - low > 1) {
      const int middle = low + (high - low) / 2;
      const std::int64_t at = allowed.start(middle);
      if (at == first) {
        low = middle;
      } else {
        high = middle;
        end = at;
      }
    }
    slices.push_back({low, first, end - first});
    first = end;
    rank = low + 1;
  }
  const bool spreads = buckets.spread_owners || buckets.at(bucket).scattered;
  if (spreads && static_cast<int>(slices.size()) < ranks) {
    const std::int64_t turn = buckets.at(bucket).turn < 0 ? bucket : buckets.at(bucket).turn;
    for (Slice& slice : slices) slice.owner = (slice.owner + turn) % ranks;
  }
  return slices;
}

}  // namespace lockstep::comm
