#include "exec/gradient_layout.hpp"

#include "core/round_up.hpp"

namespace lockstep::exec {

namespace {

constexpr std::int64_t kSlotAlignment = 16;  // floats

}

GradientLayout make_gradient_layout(const Program& program, std::int64_t bucket_bytes) {
  GradientLayout layout;
  for (std::size_t i = 0; i < program.slots.size(); ++i) {
    const bool full = !layout.buckets.empty() &&
                      layout.buckets.back().elements * static_cast<std::int64_t>(sizeof(float)) >= bucket_bytes;
    if (layout.buckets.empty() || full) {
      Bucket bucket;
      bucket.first_slot = static_cast<std::int32_t>(i);
      layout.buckets.push_back(bucket);
    }
    Bucket& bucket = layout.buckets.back();
    layout.slots.push_back({static_cast<std::int32_t>(layout.buckets.size() - 1), bucket.elements});
    const std::int64_t elements = program.slots[i].elements;
    for (std::int64_t at = 0; at < elements; at += kChunk) bucket.cuts.push_back(bucket.elements + at);
    bucket.elements += round_up(elements, kSlotAlignment);
    bucket.last_slot = static_cast<std::int32_t>(i + 1);
  }
  return layout;
}

comm::BucketLayout bucket_layout(const GradientLayout& layout, std::int64_t shards) {
  comm::BucketLayout buckets;
  buckets.shards = static_cast<int>(shards);
  for (const auto& bucket : layout.buckets) {
    buckets.bucket_elements.push_back(bucket.elements);
    buckets.cuts.push_back(bucket.cuts);
  }
  return buckets;
}

}  // namespace lockstep::exec
