// attention on a Grid, one group per row: a row is a query in forward and for the query's gradient, and a key for the
// gradients of keys and values. A row walks over the other side in blocks of kAttentionBlock; its lanes divide the
// block's scores among them and write them to the workspace, and then divide the head's channels and sum these. So only
// one block of scores is kept per row. As on the CPU, forward keeps a running maximum and sum (online softmax) and
// saves the logarithm of the sum, from which backward recomputes the probabilities.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "device/float_math.hpp"
#include "device/gpu/grid.hpp"
#include "ops/attention/attention_rows.hpp"
#include "ops/attention/attention_sizes.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"

namespace lockstep::ops {

/// One of q, k, v, the output, or a gradient of these: [batch, positions, stride], with a head's channels contiguous.
/// Null data: not wanted.
template <class Float>
struct HeadTensor {
  Float* data = nullptr;
  std::int64_t positions = 0, stride = 0;
  LOCKSTEP_HOST_DEVICE Float* row(std::int64_t sample, std::int64_t position, std::int64_t channel) const {
    return data + (sample * positions + position) * stride + channel;
  }
};

template <class Float>
struct QueryKeyValue {
  HeadTensor<Float> q, k, v;
};

/// For a tensor with the output's shape.
template <class Float>
HeadTensor<Float> heads_of_output(Float* data, const AttentionSizes& sizes) {
  return {data, sizes.queries, sizes.width()};
}

/// For the inputs, or their gradients: one tensor or three.
template <class Float, class Pointer>
QueryKeyValue<Float> heads_of_inputs(std::span<Pointer const> tensors, const AttentionSizes& sizes) {
  const std::int64_t width = sizes.width(), kv_width = sizes.kv_width();
  auto* first = static_cast<Float*>(tensors[0]);
  if (!sizes.packed) {
    return {heads_of_output(first, sizes),
            {static_cast<Float*>(tensors[1]), sizes.keys, kv_width},
            {static_cast<Float*>(tensors[2]), sizes.keys, kv_width}};
  }
  if (first == nullptr) return {};
  const HeadTensor<Float> packed{first, sizes.queries, width + 2 * kv_width};
  return {packed,
          {first + width, packed.positions, packed.stride},
          {first + width + kv_width, packed.positions, packed.stride}};
}

/// Row `i` of [batch, heads, positions], of queries or of keys.
struct AttentionRow {
  LOCKSTEP_HOST_DEVICE AttentionRow(std::int64_t i, std::int64_t positions, std::int64_t heads, std::int64_t size)
      : position(i % positions), head(i / positions % heads), sample(i / positions / heads), channel(head * size) {}
  std::int64_t position, head, sample;
  std::int64_t channel;  ///< of the head's first channel
};

LOCKSTEP_HOST_DEVICE inline AttentionRow query_row(std::int64_t i, const AttentionSizes& sizes) {
  return {i, sizes.queries, sizes.heads, sizes.size};
}
/// The first channel of the keys and values that a head of queries sees.
LOCKSTEP_HOST_DEVICE inline std::int64_t kv_channel(const AttentionRow& query, const AttentionSizes& sizes) {
  return query.head / sizes.group() * sizes.size;
}

/// Sums in channel order.
LOCKSTEP_HOST_DEVICE inline float dot_of_heads(const float* a, const float* b, std::int64_t size) {
  float sum = 0;
  for (std::int64_t i = 0; i < size; ++i) sum += a[i] * b[i];
  return sum;
}

LOCKSTEP_HOST_DEVICE inline std::int64_t block_from(std::int64_t first, std::int64_t end) {
  return end - first < kAttentionBlock ? end - first : kAttentionBlock;
}

struct AttentionForwardFunctor {
  QueryKeyValue<const float> in;
  HeadTensor<float> out;
  float* log_sums = nullptr;  ///< [batch, heads, queries]; null in inference
  float* scratch = nullptr;   ///< [batch, heads, queries, kAttentionBlock]
  AttentionSizes sizes;
  Lengths lengths;
  float scale = 0;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t i) const {
    const AttentionRow row = query_row(i, sizes);
    const std::int64_t size = sizes.size, seen = sizes.seen(row.position + 1, lengths.of(row.sample));
    const std::int64_t channel = kv_channel(row, sizes);
    const float* q = in.q.row(row.sample, row.position, row.channel);
    float *y = out.row(row.sample, row.position, row.channel), *p = scratch + i * kAttentionBlock;
    group.each(size, [=](std::int64_t c) { y[c] = 0; });
    float maximum = -__builtin_inff(), total = 0;
    for (std::int64_t first = 0; first < seen; first += kAttentionBlock) {
      const std::int64_t keys = block_from(first, seen), stride = in.k.stride;
      const float *k = in.k.row(row.sample, first, channel), *v = in.v.row(row.sample, first, channel);
      const float factor_of_scores = scale;
      const float largest = group.maximum(
          keys, [=](std::int64_t s) { return p[s] = dot_of_heads(q, k + s * stride, size) * factor_of_scores; });
      const float higher = largest > maximum ? largest : maximum;
      const float sum = group.sum(keys, [=](std::int64_t s) { return p[s] = device::vector_exp(p[s] - higher); });
      const float factor = first == 0 ? 0.0F : device::vector_exp(maximum - higher);
      total = total * factor + sum;
      maximum = higher;
      group.barrier();
      group.each(size, [=](std::int64_t c) {
        float value = y[c] * factor;
        for (std::int64_t s = 0; s < keys; ++s) value += p[s] * v[s * stride + c];
        y[c] = value;
      });
      group.barrier();
    }
    finish(group, i, y, total, maximum);
  }

 private:
  template <class Group>
  LOCKSTEP_HOST_DEVICE void finish(Group& group, std::int64_t i, float* y, float total, float maximum) const {
    const float factor = 1.0F / total;
    group.each(sizes.size, [=](std::int64_t c) { y[c] *= factor; });
    if (log_sums == nullptr) return;
    float* to = log_sums + i;
    group.once([=] { *to = device::vector_log(total) + maximum; });
  }
};

/// What gradients are computed from.
struct AttentionSeen {
  QueryKeyValue<const float> in;
  HeadTensor<const float> out, dout;
  const float* log_sums = nullptr;  ///< [batch, heads, queries]
  AttentionSizes sizes;
  Lengths lengths;
  float scale = 0;

  /// The weight of a key in a query's attention.
  LOCKSTEP_HOST_DEVICE float probability(const float* q, const float* k, float log_sum) const {
    return device::vector_exp(dot_of_heads(q, k, sizes.size) * scale - log_sum);
  }
  /// With respect to the score, before scaling: the factor in dq and dk.
  LOCKSTEP_HOST_DEVICE float gradient(float probability, const float* dy, const float* v, float dot) const {
    return probability * (dot_of_heads(dy, v, sizes.size) - dot) * scale;
  }
};

/// dots[row] = sum of out * dout over the head's channels.
struct AttentionDotsFunctor {
  AttentionSeen seen;
  float* dots = nullptr;  ///< [batch, heads, queries]
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t i) const {
    const AttentionRow row = query_row(i, seen.sizes);
    const float* y = seen.out.row(row.sample, row.position, row.channel);
    const float* dy = seen.dout.row(row.sample, row.position, row.channel);
    const float dot = group.sum(seen.sizes.size, [=](std::int64_t c) { return y[c] * dy[c]; });
    float* to = dots + i;
    group.once([=] { *to = dot; });
  }
};

struct AttentionQueryGradientFunctor {
  AttentionSeen seen;
  const float* dots = nullptr;
  HeadTensor<float> dq;
  float* scratch = nullptr;  ///< [batch, heads, queries, kAttentionBlock]
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t i) const {
    const AttentionSeen from = seen;
    const AttentionRow row = query_row(i, from.sizes);
    const std::int64_t channel = kv_channel(row, from.sizes);
    const float* q = from.in.q.row(row.sample, row.position, row.channel);
    const float* dy = from.dout.row(row.sample, row.position, row.channel);
    float *dx = dq.row(row.sample, row.position, row.channel), *g = scratch + i * kAttentionBlock;
    const float log_sum = from.log_sums[i], dot = dots[i];
    group.each(from.sizes.size, [=](std::int64_t c) { dx[c] = 0; });
    const std::int64_t end = from.sizes.seen(row.position + 1, from.lengths.of(row.sample));
    const std::int64_t stride = from.in.k.stride;
    for (std::int64_t first = 0; first < end; first += kAttentionBlock) {
      const std::int64_t keys = block_from(first, end);
      const float* k = from.in.k.row(row.sample, first, channel);
      const float* v = from.in.v.row(row.sample, first, channel);
      group.each(keys, [=](std::int64_t s) {
        g[s] = from.gradient(from.probability(q, k + s * stride, log_sum), dy, v + s * stride, dot);
      });
      group.barrier();
      group.each(from.sizes.size, [=](std::int64_t c) {
        float sum = dx[c];
        for (std::int64_t s = 0; s < keys; ++s) sum += g[s] * k[s * stride + c];
        dx[c] = sum;
      });
      group.barrier();
    }
  }
};

/// Sums over the heads of the group, and over each one's queries, in order.
struct AttentionKeyGradientFunctor {
  AttentionSeen seen;
  const float* dots = nullptr;
  HeadTensor<float> dk, dv;  ///< either may be null: not wanted
  float* scratch = nullptr;  ///< [batch, kv_heads, keys, 2, kAttentionBlock]
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t i) const {
    const AttentionSeen from = seen;
    const AttentionRow row(i, from.sizes.keys, from.sizes.kv_heads, from.sizes.size);
    const float* k = from.in.k.row(row.sample, row.position, row.channel);
    const float* v = from.in.v.row(row.sample, row.position, row.channel);
    float *p = scratch + 2 * i * kAttentionBlock, *g = p + kAttentionBlock;
    clear(group, dk, row);
    clear(group, dv, row);
    if (row.position >= from.lengths.of(row.sample)) return;
    const std::int64_t heads = from.sizes.group(), end = from.sizes.queries;
    for (std::int64_t head = row.head * heads; head < (row.head + 1) * heads; ++head) {
      const std::int64_t channel = head * from.sizes.size;
      const std::int64_t first_query = (row.sample * from.sizes.heads + head) * end;
      for (std::int64_t first = from.sizes.first_seeing(row.position); first < end; first += kAttentionBlock) {
        const std::int64_t queries = block_from(first, end);
        const float* q = from.in.q.row(row.sample, first, channel);
        const float* dy = from.dout.row(row.sample, first, channel);
        const float *log_sums = from.log_sums + first_query + first, *of_rows = dots + first_query + first;
        group.each(queries, [=](std::int64_t t) {
          p[t] = from.probability(q + t * from.in.q.stride, k, log_sums[t]);
          g[t] = from.gradient(p[t], dy + t * from.dout.stride, v, of_rows[t]);
        });
        group.barrier();
        add(group, dk, row, g, HeadRows{q, from.in.q.stride, queries});
        add(group, dv, row, p, HeadRows{dy, from.dout.stride, queries});
        group.barrier();
      }
    }
  }

 private:
  struct HeadRows {
    const float* data;
    std::int64_t stride, count;
  };
  template <class Group>
  LOCKSTEP_HOST_DEVICE void clear(Group& group, const HeadTensor<float>& gradient, const AttentionRow& row) const {
    if (gradient.data == nullptr) return;
    float* to = gradient.row(row.sample, row.position, row.channel);
    group.each(seen.sizes.size, [=](std::int64_t c) { to[c] = 0; });
  }
  /// gradient += sum of factors[t] * rows[t], in order.
  template <class Group>
  LOCKSTEP_HOST_DEVICE void add(Group& group, const HeadTensor<float>& gradient, const AttentionRow& row,
                                const float* factors, const HeadRows& rows) const {
    if (gradient.data == nullptr) return;
    float* to = gradient.row(row.sample, row.position, row.channel);
    group.each(seen.sizes.size, [=](std::int64_t c) {
      float sum = to[c];
      for (std::int64_t t = 0; t < rows.count; ++t) sum += factors[t] * rows.data[t * rows.stride + c];
      to[c] = sum;
    });
  }
};

template <class Grid>
class AttentionGrid final : public Kernel {
 public:
  AttentionGrid(const AttentionSizes& sizes, double scale, Mode mode, std::string algorithms)
      : sizes_(sizes), scale_(scale), training_(mode == Mode::training), algorithms_(std::move(algorithms)) {}

  std::string algorithms() const override { return algorithms_; }

  /// A block of scores per query; backward needs two per key, too, and the dots in front of them.
  std::size_t workspace_bytes() const override {
    const std::int64_t forward = query_rows() * kAttentionBlock;
    const std::int64_t backward = query_rows() + std::max(forward, 2 * key_rows() * kAttentionBlock);
    return (training_ ? backward : forward) * sizeof(float);
  }

  void forward(const ForwardCall& call) override {
    auto* log_sums = call.saved.empty() ? nullptr : static_cast<float*>(call.saved[0]);
    Grid::rows(stream_of(call), query_rows(),
               AttentionForwardFunctor{heads_of_inputs<const float>(call.inputs, sizes_),
                                       heads_of_output(output(call), sizes_), log_sums,
                                       static_cast<float*>(call.workspace), sizes_, key_lengths(call, sizes_), scale_});
  }

  void backward(const BackwardCall& call) override {
    auto* dots = static_cast<float*>(call.workspace);
    float* scores = dots + query_rows();
    const AttentionSeen seen{heads_of_inputs<const float>(call.inputs, sizes_),
                             heads_of_output(static_cast<const float*>(call.outputs[0]), sizes_),
                             heads_of_output(output_gradient(call), sizes_),
                             static_cast<const float*>(call.saved[0]),
                             sizes_,
                             key_lengths(call, sizes_),
                             scale_};
    const auto gradients = heads_of_inputs<float>(call.input_gradients, sizes_);
    Grid::rows(stream_of(call), query_rows(), AttentionDotsFunctor{seen, dots});
    if (gradients.q.data != nullptr) {
      Grid::rows(stream_of(call), query_rows(), AttentionQueryGradientFunctor{seen, dots, gradients.q, scores});
    }
    if (gradients.k.data == nullptr && gradients.v.data == nullptr) return;
    Grid::rows(stream_of(call), key_rows(), AttentionKeyGradientFunctor{seen, dots, gradients.k, gradients.v, scores});
  }

 private:
  std::int64_t query_rows() const { return sizes_.batch * sizes_.heads * sizes_.queries; }
  std::int64_t key_rows() const { return sizes_.batch * sizes_.kv_heads * sizes_.keys; }

  AttentionSizes sizes_;
  float scale_;
  bool training_;
  std::string algorithms_;
};

/// `algorithms`: the text that Kernel::algorithms() returns.
template <class Grid>
std::unique_ptr<Kernel> make_attention_grid_of(const KernelRequest& request, const std::string& algorithms) {
  const AttentionSizes sizes(*request.attributes, request.inputs);
  const double scale = 1 / std::sqrt(static_cast<double>(sizes.size));
  return make_for_float32(
      request, [&] { return std::make_unique<AttentionGrid<Grid>>(sizes, scale, request.mode, algorithms); });
}

template <class Grid>
std::unique_ptr<Kernel> make_attention_grid(const KernelRequest& request) {
  return make_attention_grid_of<Grid>(request, "");
}

}  // namespace lockstep::ops
