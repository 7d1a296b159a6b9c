#include "comm/reduce/slices.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "lockstep/error.hpp"

namespace lockstep::comm {

std::vector<std::int64_t> chunk_cuts(std::span<const std::int64_t> tensor_elements) {
  std::vector<std::int64_t> cuts;
  std::int64_t start = 0;
  for (const std::int64_t elements : tensor_elements) {
    for (std::int64_t i = 0; i < elements; i += kChunkElements) cuts.push_back(start + i);
    start += elements;
  }
  return cuts;
}

namespace {

/// Where slices may begin and end.
class Cuts {
 public:
  Cuts(std::int64_t elements, std::span<const std::int64_t> cuts, int ranks) : elements_(elements), ranks_(ranks) {
    LOCKSTEP_CHECK(std::is_sorted(cuts.begin(), cuts.end()), "cuts must ascend");
    for (const std::int64_t cut : cuts) {
      if (cut > allowed_.back() && cut < elements) allowed_.push_back(cut);
    }
    if (elements > 0) allowed_.push_back(elements);
  }

  /// Where the slice of this rank begins: the cut that is nearest to its equal share, the lower of two.
  [[nodiscard]] std::int64_t start(int rank) const {
    if (rank == ranks_) return elements_;
    const double ideal = static_cast<double>(elements_) * rank / ranks_;
    const auto above = std::lower_bound(allowed_.begin(), allowed_.end(), ideal,
                                        [](std::int64_t cut, double at) { return static_cast<double>(cut) < at; });
    if (above == allowed_.begin()) return allowed_.front();
    if (above == allowed_.end()) return allowed_.back();
    const auto distance = [&](std::int64_t cut) { return std::abs(static_cast<double>(cut) - ideal); };
    return distance(*std::prev(above)) <= distance(*above) ? *std::prev(above) : *above;
  }

 private:
  std::int64_t elements_;
  int ranks_;
  std::vector<std::int64_t> allowed_ = {0};
};

}  // namespace

std::vector<std::int64_t> slice_bounds(std::int64_t elements, std::span<const std::int64_t> cuts, int ranks) {
  const Cuts allowed(elements, cuts, ranks);
  std::vector<std::int64_t> bounds;
  for (int r = 0; r <= ranks; ++r) bounds.push_back(allowed.start(r));
  return bounds;
}

std::vector<Slice> slices_of(const BucketLayout& layout, int bucket, int ranks) {
  const auto b = static_cast<std::size_t>(bucket);
  const std::int64_t elements = layout.bucket_elements[b];
  const Cuts allowed(elements, layout.cuts[b], ranks);
  std::vector<Slice> slices;
  for (int rank = 0; rank < ranks;) {
    const std::int64_t first = allowed.start(rank);
    if (first == elements) break;
    // Of the ranks that would begin here the last one has the slice. Their number is searched for, not counted.
    int low = rank, high = ranks;
    while (high - low > 1) {
      const int middle = low + (high - low) / 2;
      (allowed.start(middle) == first ? low : high) = middle;
    }
    slices.push_back({low, first, allowed.start(low + 1) - first});
    rank = low + 1;
  }
  if (layout.spread_owners && static_cast<int>(slices.size()) < ranks) {
    for (Slice& slice : slices) slice.owner = static_cast<int>((slice.owner + std::int64_t{bucket}) % ranks);
  }
  return slices;
}

}  // namespace lockstep::comm
