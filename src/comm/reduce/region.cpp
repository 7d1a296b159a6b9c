#include "comm/reduce/region.hpp"

#include <fmt/format.h>

#include <new>

#include "comm/transport/host_memory.hpp"
#include "core/round_up.hpp"

namespace lockstep::comm {

namespace {

constexpr std::size_t kLine = 64;

std::size_t rounded(std::size_t bytes) {
  return round_up(bytes, kLine);
}

static_assert(Flag::is_always_lock_free, "flags are shared between processes");

}  // namespace

// Every bucket starts on a cache line.
Region::Offsets Region::offsets(const RegionShape& shape) {
  Offsets p;
  const std::size_t count = shape.buckets.size();
  std::size_t slices = 0;
  std::int64_t sum_elements = 0;
  for (const RegionShape::Bucket& bucket : shape.buckets) {
    p.partial_start.push_back(p.partial_elements);
    p.partial_elements += whole_lines(bucket.partial);
    p.sum_start.push_back(sum_elements);
    sum_elements += whole_lines(bucket.sum);
    p.first_slice.push_back(slices);
    slices += bucket.slices;
  }
  const auto floats = [](std::int64_t elements) { return elements * sizeof(float); };
  const auto slots = [](std::size_t doubles) { return 2 * rounded(doubles * sizeof(double)); };
  p.scalars = rounded(sizeof(Header));
  p.partial_flags = p.scalars + slots(shape.scalars);
  p.partials = p.partial_flags + rounded(count * shape.partials * sizeof(Flag));
  p.all_scalars = p.partials + shape.partials * floats(p.partial_elements);
  p.counters = p.all_scalars + slots(shape.all_scalars);
  p.slice_flags = p.counters + rounded(count * sizeof(Flag));
  p.sums = p.slice_flags + rounded(slices * sizeof(Flag));
  p.end = p.sums + floats(sum_elements);
  return p;
}

std::size_t Region::bytes(const RegionShape& shape, bool is_first) {
  const Offsets p = offsets(shape);
  return is_first ? p.end : p.all_scalars;
}

std::string Region::layout(const RegionShape& shape) {
  std::vector<std::uint64_t> numbers;
  for (const RegionShape::Bucket& bucket : shape.buckets) {
    numbers.insert(numbers.end(), {static_cast<std::uint64_t>(bucket.partial), static_cast<std::uint64_t>(bucket.sum),
                                   static_cast<std::uint64_t>(bucket.slices)});
  }
  return fmt::format("{} partial sums, {} and {} scalars, {} buckets, {}", shape.partials, shape.scalars,
                     shape.all_scalars, shape.buckets.size(), digest_of_layout(numbers));
}

Region::Region(std::byte* block, const RegionShape& shape, Doorbell& doorbell)
    : block_(block),
      doorbell_(&doorbell),
      offsets_(offsets(shape)),
      scalar_count_(shape.scalars),
      all_scalar_count_(shape.all_scalars) {}

void Region::construct(std::byte* block, const RegionShape& shape, bool is_first) {
  const Offsets p = offsets(shape);
  const auto clear = [block](std::size_t from, std::size_t to) {
    for (; from < to; from += sizeof(Flag)) new (block + from) Flag(0);
  };
  new (block) Header();
  clear(p.partial_flags, p.partials);
  if (is_first) clear(p.counters, p.sums);
}

double* Region::scalars(std::uint64_t number) const {
  return reinterpret_cast<double*>(block_ + offsets_.scalars + (number % 2) * rounded(scalar_count_ * sizeof(double)));
}

double* Region::all_scalars(std::uint64_t number) const {
  return reinterpret_cast<double*>(block_ + offsets_.all_scalars +
                                   (number % 2) * rounded(all_scalar_count_ * sizeof(double)));
}

Flag& Region::partial_ready(int root, int bucket) const {
  return flags(offsets_.partial_flags)[root * buckets() + bucket];
}

float* Region::partial(int root, int bucket) const {
  auto* first = reinterpret_cast<float*>(block_ + offsets_.partials);
  return first + root * offsets_.partial_elements + offsets_.partial_start[bucket];
}

Flag& Region::slice_ready(int slice, int bucket) const {
  return flags(offsets_.slice_flags)[offsets_.first_slice[bucket] + slice];
}

float* Region::sums(int bucket) const {
  auto* first = reinterpret_cast<float*>(block_ + offsets_.sums);
  return first + offsets_.sum_start[bucket];
}

}  // namespace lockstep::comm
