#include "comm/slices.hpp"

#include <algorithm>
#include <cmath>

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

std::vector<std::int64_t> slice_bounds(std::int64_t elements, std::span<const std::int64_t> cuts, int ranks) {
  LOCKSTEP_CHECK(std::is_sorted(cuts.begin(), cuts.end()), "cuts must ascend");
  std::vector<std::int64_t> allowed = {0};
  for (const std::int64_t cut : cuts) {
    if (cut > allowed.back() && cut < elements) allowed.push_back(cut);
  }
  if (elements > 0) allowed.push_back(elements);

  std::vector<std::int64_t> bounds;
  for (int r = 0; r <= ranks; ++r) {
    const double ideal = static_cast<double>(elements) * r / ranks;
    const auto nearer = [&](std::int64_t a, std::int64_t b) {
      return std::abs(static_cast<double>(a) - ideal) < std::abs(static_cast<double>(b) - ideal);
    };
    bounds.push_back(*std::min_element(allowed.begin(), allowed.end(), nearer));
  }
  bounds.back() = elements;
  return bounds;
}

}  // namespace lockstep::comm
