#include "comm/region.hpp"

#include <new>

namespace lockstep::comm {

namespace {

constexpr std::size_t kLine = 64;
constexpr std::int64_t kLineFloats = 16;

std::size_t rounded(std::size_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

static_assert(Flag::is_always_lock_free, "flags are shared between processes");

}  // namespace

// Every bucket starts on a cache line.
Region::Places Region::places(const RegionShape& shape) {
  Places p;
  const std::size_t count = shape.bucket_elements.size();
  for (const std::int64_t elements : shape.bucket_elements) {
    p.bucket_start.push_back(p.partial_elements);
    p.partial_elements += (elements + kLineFloats - 1) / kLineFloats * kLineFloats;
  }
  const std::size_t vector_bytes = static_cast<std::size_t>(p.partial_elements) * sizeof(float);
  p.scalars = rounded(sizeof(Header));
  p.slice_flags = p.scalars + 2 * rounded(static_cast<std::size_t>(shape.scalars) * sizeof(double));
  p.partial_flags = p.slice_flags + rounded(count * static_cast<std::size_t>(shape.ranks) * sizeof(Flag));
  p.partials = p.partial_flags + rounded(count * static_cast<std::size_t>(shape.partials) * sizeof(Flag));
  p.sums = p.partials + static_cast<std::size_t>(shape.partials) * vector_bytes;
  p.end = p.sums + vector_bytes;
  return p;
}

std::size_t Region::bytes(const RegionShape& shape, bool with_sums) {
  const Places p = places(shape);
  return with_sums ? p.end : p.sums;
}

Region::Region(std::byte* block, const RegionShape& shape)
    : block_(block), places_(places(shape)), scalar_count_(static_cast<std::size_t>(shape.scalars)) {}

void Region::construct() {
  new (block_) Header();
  for (std::size_t place = places_.slice_flags; place < places_.partials; place += sizeof(Flag)) {
    new (block_ + place) Flag(0);
  }
}

double* Region::scalars(std::uint64_t number) const {
  return reinterpret_cast<double*>(block_ + places_.scalars + (number % 2) * rounded(scalar_count_ * sizeof(double)));
}

Flag& Region::partial_ready(int root, int bucket) const {
  return flags(places_.partial_flags)[static_cast<std::size_t>(root) * buckets() + static_cast<std::size_t>(bucket)];
}

float* Region::partial(int root, int bucket) const {
  auto* first = reinterpret_cast<float*>(block_ + places_.partials);
  return first + root * places_.partial_elements + places_.bucket_start[static_cast<std::size_t>(bucket)];
}

Flag& Region::slice_ready(int owner, int bucket) const {
  return flags(places_.slice_flags)[static_cast<std::size_t>(owner) * buckets() + static_cast<std::size_t>(bucket)];
}

float* Region::sums(int bucket) const {
  auto* first = reinterpret_cast<float*>(block_ + places_.sums);
  return first + places_.bucket_start[static_cast<std::size_t>(bucket)];
}

}  // namespace lockstep::comm
