#include "comm/reduce/gpu_rings.hpp"

#include <algorithm>
#include <utility>

#include "core/round_up.hpp"

namespace lockstep::comm {

namespace {

constexpr std::int64_t kRingAlignment = 64;  // elements: as that of a GPU's blocks

struct Extent {
  std::int64_t first = 0, end = 0;
};

/// The lowest place that none of these take.
std::int64_t first_fit(std::vector<Extent> taken, std::int64_t elements) {
  std::sort(taken.begin(), taken.end(), [](const Extent& a, const Extent& b) { return a.first < b.first; });
  std::int64_t at = 0;
  for (const Extent& one : taken) {
    if (one.first - at >= elements) break;
    at = std::max(at, one.end);
  }
  return at;
}

}  // namespace

RingLayout ring_layout(const GradientBuckets& buckets, std::int64_t open, std::int64_t ahead) {
  RingLayout layout;
  std::vector<Extent> places;
  for (const GradientBuckets::Bucket& bucket : buckets.buckets) {
    if (!bucket.scattered) continue;
    const std::int64_t elements = round_up(std::max<std::int64_t>(bucket.elements, 1), kRingAlignment);
    std::vector<Extent> taken;  // by those before it that may be open, or wait, at the same time
    std::int64_t together = elements;
    for (std::size_t i = places.size(); i-- > 0; taken.push_back(places[i])) {
      together += places[i].end - places[i].first;
      if (together > std::max(open, elements) + ahead) break;
    }
    const std::int64_t at = first_fit(std::move(taken), elements);
    layout.offsets.push_back(at);
    places.push_back({at, at + elements});
    layout.elements = std::max(layout.elements, at + elements);
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    layout.same.push_back(i);
    layout.earlier.push_back(-1);
    for (std::size_t other = 0; other < places.size(); ++other) {
      if (places[other].end <= places[i].first || places[i].end <= places[other].first) continue;
      layout.same[i] = other;
      if (other < i) layout.earlier[i] = other;
    }
  }
  return layout;
}

GpuRings::GpuRings(device::Gpu& gpu, Stream clears, const RingLayout& layout, int workers) : offsets_(layout.offsets) {
  const auto bytes = layout.elements * sizeof(float);
  for (int r = 0; r < workers; ++r) {
    Ring& ring = rings_.emplace_back(Ring{device::GpuBlock(gpu, bytes), gpu.make_event(), {}});
    for (std::size_t i = 0; i < offsets_.size(); ++i) ring.written.push_back(gpu.make_event());
    // Buckets are sent as a whole, including the gaps between tensors, which kernels never write.
    gpu.clear(clears, ring.memory.get(), bytes);
    gpu.record(ring.cleared, clears);
  }
}

GradientBuffer GpuRings::buffer(int ring, int streamed) const {
  const Ring& of = rings_.at(ring);
  const std::size_t i = streamed;
  return {of.memory.as<float>() + offsets_[i], false, of.cleared, of.written[i]};
}

}  // namespace lockstep::comm
