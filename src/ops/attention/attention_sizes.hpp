// The sizes of an attention, from attributes and inputs that the op has checked.
#pragma once

#include <cstdint>
#include <span>

#include "core/host_device.hpp"
#include "lockstep/op.hpp"

namespace lockstep::ops {

struct AttentionSizes {
  std::int64_t batch = 0, queries = 0, keys = 0, heads = 1;
  std::int64_t size = 0;    ///< of a head
  std::int64_t offset = 0;  ///< position of query 0 among the keys; 0 as long as there is no cache of past keys
  bool causal = true;
  bool packed = true;  ///< q, k, v are side by side in one input

  AttentionSizes(const Attributes& attributes, std::span<const TensorSpec> inputs)
      : batch(inputs[0].shape[0]),
        queries(inputs[0].shape[1]),
        keys(inputs.size() == 1 ? queries : inputs[1].shape[1]),
        heads(attributes.integer("heads")),
        size(inputs[0].shape[2] / (inputs.size() == 1 ? 3 : 1) / heads),
        causal(attributes.boolean("causal")),
        packed(inputs.size() == 1) {}

  /// How many keys are visible to the first `queries_end` queries.
  [[nodiscard]] LOCKSTEP_HOST_DEVICE std::int64_t seen(std::int64_t queries_end) const {
    return causal && offset + queries_end < keys ? offset + queries_end : keys;
  }
  /// The first query that sees the key; `queries` or more if none does.
  [[nodiscard]] LOCKSTEP_HOST_DEVICE std::int64_t first_seeing(std::int64_t key) const {
    return causal && key > offset ? key - offset : 0;
  }
};

}  // namespace lockstep::ops
