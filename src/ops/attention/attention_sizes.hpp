// The sizes of an attention, from attributes and inputs that the op has checked.
#pragma once

#include <cstdint>
#include <span>

#include "core/host_device.hpp"
#include "lockstep/op.hpp"
#include "ops/lengths.hpp"

namespace lockstep::ops {

struct AttentionSizes {
  std::int64_t batch = 0, queries = 0, keys = 0;
  std::int64_t heads = 1;     ///< of queries
  std::int64_t kv_heads = 1;  ///< of keys and values: each serves heads / kv_heads neighbouring heads of queries
  std::int64_t size = 0;      ///< of a head
  bool causal = true;
  bool packed = true;   ///< q, k, v are side by side in one input
  bool padded = false;  ///< the last input is lengths
  /// Position of query 0 among the keys. Where causal, there are keys before the queries' own only if a cache of past
  /// ones is passed (step/exec/cached_model), never in a model's graph.
  std::int64_t offset = 0;

  AttentionSizes(const Attributes& attributes, std::span<const TensorSpec> inputs)
      : batch(inputs[0].shape[0]),
        queries(inputs[0].shape[1]),
        keys(inputs.size() < 3 ? queries : inputs[1].shape[1]),
        heads(attributes.integer("heads")),
        kv_heads(attributes.has("kv_heads") ? attributes.integer("kv_heads") : heads),
        size(inputs[0].shape[2] / (inputs.size() < 3 ? heads + 2 * kv_heads : heads)),
        causal(attributes.boolean("causal")),
        packed(inputs.size() < 3),
        padded(inputs.size() % 2 == 0),
        offset(causal ? keys - queries : 0) {}

  LOCKSTEP_HOST_DEVICE std::int64_t group() const { return heads / kv_heads; }
  std::int64_t width() const { return heads * size; }  ///< of queries and of the output
  std::int64_t kv_width() const { return kv_heads * size; }
  /// How many keys are visible to the first `queries_end` queries of a sample that has `length` keys.
  LOCKSTEP_HOST_DEVICE std::int64_t seen(std::int64_t queries_end, std::int64_t length) const {
    return causal && offset + queries_end < length ? offset + queries_end : length;
  }
  /// The first query that sees the key; `queries` or more if none does.
  LOCKSTEP_HOST_DEVICE std::int64_t first_seeing(std::int64_t key) const {
    return causal && key > offset ? key - offset : 0;
  }
};

/// How many keys of each sample are there: its last input, if it has lengths.
template <class Call>
Lengths key_lengths(const Call& call, const AttentionSizes& sizes) {
  return sizes.padded ? lengths_of(call, sizes.packed ? 1 : 3, sizes.keys) : Lengths{nullptr, sizes.keys};
}

}  // namespace lockstep::ops
