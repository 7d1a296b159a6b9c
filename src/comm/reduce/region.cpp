#include "comm/reduce/region.hpp"

#include <fmt/format.h>

#include <new>
#include <numeric>

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
  const std::size_t count = shape.buckets.buckets.size();
  for (const GradientBuckets::Bucket& bucket : shape.buckets.buckets) {
    p.bucket_start.push_back(p.partial_elements);
    p.partial_elements += whole_lines(bucket.elements);
  }
  std::size_t slices = 0;
  for (const int in_bucket : shape.slices) {
    p.first_slice.push_back(slices);
    slices += static_cast<std::size_t>(in_bucket);
  }
  const std::size_t vector_bytes = static_cast<std::size_t>(p.partial_elements) * sizeof(float);
  const auto slots = [](std::size_t doubles) { return 2 * rounded(doubles * sizeof(double)); };
  p.scalars = rounded(sizeof(Header));
  p.partial_flags = p.scalars + slots(shape.scalars);
  p.partials = p.partial_flags + rounded(count * static_cast<std::size_t>(shape.partials) * sizeof(Flag));
  p.all_scalars = p.partials + static_cast<std::size_t>(shape.partials) * vector_bytes;
  p.counters = p.all_scalars + slots(shape.all_scalars);
  p.slice_flags = p.counters + rounded(shape.slices.size() * sizeof(Flag));
  p.sums = p.slice_flags + rounded(slices * sizeof(Flag));
  p.end = p.sums + (shape.slices.empty() ? 0 : vector_bytes);
  return p;
}

std::size_t Region::bytes(const RegionShape& shape, bool is_first) {
  const Offsets p = offsets(shape);
  return is_first ? p.end : p.all_scalars;
}

std::string Region::layout(const RegionShape& shape) {
  std::vector<std::uint64_t> numbers(shape.slices.begin(), shape.slices.end());
  for (const GradientBuckets::Bucket& bucket : shape.buckets.buckets)
    numbers.push_back(static_cast<std::uint64_t>(bucket.elements));
  return fmt::format("{} partial sums, {} and {} scalars, {} buckets with {} slices, {}", shape.partials, shape.scalars,
                     shape.all_scalars, shape.buckets.count(),
                     std::accumulate(shape.slices.begin(), shape.slices.end(), 0), digest_of_layout(numbers));
}

Region::Region(std::byte* block, const RegionShape& shape)
    : block_(block), offsets_(offsets(shape)), scalar_count_(shape.scalars), all_scalar_count_(shape.all_scalars) {}

void Region::construct(bool is_first) {
  const auto clear = [this](std::size_t from, std::size_t to) {
    for (; from < to; from += sizeof(Flag)) new (block_ + from) Flag(0);
  };
  new (block_) Header();
  clear(offsets_.partial_flags, offsets_.partials);
  if (is_first) clear(offsets_.counters, offsets_.sums);
}

double* Region::scalars(std::uint64_t number) const {
  return reinterpret_cast<double*>(block_ + offsets_.scalars + (number % 2) * rounded(scalar_count_ * sizeof(double)));
}

double* Region::all_scalars(std::uint64_t number) const {
  return reinterpret_cast<double*>(block_ + offsets_.all_scalars +
                                   (number % 2) * rounded(all_scalar_count_ * sizeof(double)));
}

Flag& Region::partial_ready(int root, int bucket) const {
  return flags(offsets_.partial_flags)[static_cast<std::size_t>(root) * buckets() + static_cast<std::size_t>(bucket)];
}

float* Region::partial(int root, int bucket) const {
  auto* first = reinterpret_cast<float*>(block_ + offsets_.partials);
  return first + root * offsets_.partial_elements + offsets_.bucket_start[static_cast<std::size_t>(bucket)];
}

Flag& Region::slice_ready(int slice, int bucket) const {
  return flags(
      offsets_.slice_flags)[offsets_.first_slice[static_cast<std::size_t>(bucket)] + static_cast<std::size_t>(slice)];
}

float* Region::sums(int bucket) const {
  auto* first = reinterpret_cast<float*>(block_ + offsets_.sums);
  return first + offsets_.bucket_start[static_cast<std::size_t>(bucket)];
}

}  // namespace lockstep::comm
