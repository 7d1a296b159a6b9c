// Scores are computed in blocks of kAttentionBlock queries and keys. Forward keeps a running maximum and sum of each
// row (online softmax). Backward recomputes each block of probabilities from the saved logarithms.
#include <algorithm>
#include <cmath>
#include <memory>

#include "device/cpu/gemm.hpp"
#include "ops/attention/attention_rows.hpp"
#include "ops/attention/attention_sizes.hpp"
#include "ops/elementwise.hpp"

namespace lockstep::ops {

namespace {

using device::Band;
using device::gemm;

/// One head of one sample: [positions, size] within a wider tensor. Null: not wanted.
template <class Float>
struct Head {
  Float* data = nullptr;
  std::int64_t stride = 0;
  Float* row(std::int64_t position) const { return data + position * stride; }
  device::MatrixView view(std::int64_t position, bool transposed = false) const {
    return {row(position), stride, transposed};
  }
};

template <class Float>
struct Heads {
  Head<Float> q, k, v;
};

struct Block {
  std::int64_t query, queries, key, keys;
};

class AttentionCpu final : public Kernel {
 public:
  AttentionCpu(const AttentionSizes& sizes, double scale) : sizes_(sizes), scale_(scale) {}

  std::size_t workspace_bytes() const override {
    const std::size_t block = kAttentionBlock * kAttentionBlock;
    return (2 * block + sizes_.queries) * sizeof(float);
  }

  void forward(const ForwardCall& call) override {
    float* log_sums = call.saved.empty() ? nullptr : static_cast<float*>(call.saved[0]);
    const Lengths lengths = key_lengths(call, sizes_);
    for (std::int64_t i = 0; i < sizes_.batch * sizes_.heads; ++i) {
      const Heads<const float> in = heads<const float>(call.inputs, i);
      forward_head(in, output_head(output(call), i), lengths.of(i / sizes_.heads),
                   log_sums == nullptr ? nullptr : log_sums + i * sizes_.queries, static_cast<float*>(call.workspace));
    }
  }

  void backward(const BackwardCall& call) override {
    const Lengths lengths = key_lengths(call, sizes_);
    for (std::int64_t i = 0; i < sizes_.batch * sizes_.heads; ++i) {
      const auto* log_sums = static_cast<const float*>(call.saved[0]) + i * sizes_.queries;
      const Heads<float> gradients = heads<float>(call.input_gradients, i);
      const Heads<const float> in = heads<const float>(call.inputs, i);
      const auto dout = output_head(output_gradient(call), i);
      auto* workspace = static_cast<float*>(call.workspace);
      float* dots = workspace + 2 * kAttentionBlock * kAttentionBlock;
      row_dots(output_head(static_cast<const float*>(call.outputs[0]), i).data, dout.data, dout.stride, dots,
               sizes_.queries, sizes_.size);
      const bool first_of_group = i % sizes_.group() == 0;
      const std::int64_t length = lengths.of(i / sizes_.heads);
      backward_head(in, gradients, dout, {log_sums, dots, length, first_of_group}, workspace);
      if (first_of_group) clear_padding(gradients, length);
    }
  }

 private:
  struct RowValues {
    const float *log_sums, *dots;
    std::int64_t length;  ///< keys of the sample
    bool first_of_group;  ///< the gradients of its keys and values are not begun
  };

  template <class Float>
  Head<Float> output_head(Float* tensor, std::int64_t index) const {
    return head(tensor, {index / sizes_.heads, index % sizes_.heads}, sizes_.queries, sizes_.width());
  }

  struct HeadNumber {
    std::int64_t sample, head;
  };

  template <class Float>
  Head<Float> head(Float* tensor, HeadNumber of, std::int64_t positions, std::int64_t stride) const {
    if (tensor == nullptr) return {};
    return {tensor + of.sample * positions * stride + of.head * sizes_.size, stride};
  }

  template <class Float, class Pointer>
  Heads<Float> heads(std::span<Pointer const> tensors, std::int64_t index) const {
    const HeadNumber query{index / sizes_.heads, index % sizes_.heads};
    const HeadNumber key{query.sample, query.head / sizes_.group()};
    auto* first = static_cast<Float*>(tensors[0]);
    if (sizes_.packed) {
      if (first == nullptr) return {};
      const std::int64_t stride = sizes_.width() + 2 * sizes_.kv_width();
      Float *keys = first + sizes_.width(), *values = keys + sizes_.kv_width();
      return {head(first, query, sizes_.queries, stride), head(keys, key, sizes_.keys, stride),
              head(values, key, sizes_.keys, stride)};
    }
    return {head(first, query, sizes_.queries, sizes_.width()),
            head(static_cast<Float*>(tensors[1]), key, sizes_.keys, sizes_.kv_width()),
            head(static_cast<Float*>(tensors[2]), key, sizes_.keys, sizes_.kv_width())};
  }

  AttentionBlock shape_of(const Block& block) const {
    const std::int64_t visible = sizes_.causal ? sizes_.offset + block.query + 1 - block.key : block.keys;
    return {block.queries, block.keys, visible};
  }

  /// A causal block on the diagonal needs only half the work.
  Band band(const Block& block, Band::Of of) const {
    const std::int64_t visible = shape_of(block).visible;
    return visible < block.keys ? Band{of, visible} : Band{};
  }

  void scores(const Heads<const float>& in, const Block& block, float* to) const {
    gemm(block.queries, block.keys, sizes_.size, in.q.view(block.query), in.k.view(block.key, true),
         {to, kAttentionBlock, false, scale_}, band(block, Band::Of::result));
  }

  void forward_head(const Heads<const float>& in, const Head<float>& out, std::int64_t length, float* log_sums,
                    float* probabilities) const {
    AttentionRows known = {};
    for (std::int64_t query = 0; query < sizes_.queries; query += kAttentionBlock) {
      const std::int64_t queries = std::min(kAttentionBlock, sizes_.queries - query);
      const std::int64_t seen = sizes_.seen(query + queries, length);
      for (std::int64_t key = 0; key < seen; key += kAttentionBlock) {
        const Block block{query, queries, key, std::min(kAttentionBlock, seen - key)};
        scores(in, block, probabilities);
        attention_softmax(probabilities, shape_of(block), known, key == 0);
        if (key > 0) scale_rows(out.row(query), out.stride, known.rescale, queries, sizes_.size);
        gemm(queries, sizes_.size, block.keys, {probabilities, kAttentionBlock}, in.v.view(key),
             {out.row(query), out.stride, key > 0}, band(block, Band::Of::left));
      }
      finish_rows(out.row(query), out.stride, known, log_sums == nullptr ? nullptr : log_sums + query, queries,
                  sizes_.size);
    }
  }

  /// The outer loop is over keys, the inner one over queries: dk and dv of a block of keys are summed over queries,
  /// after those of the group's heads before; dq over blocks of keys; all in order.
  void backward_head(const Heads<const float>& in, const Heads<float>& gradients, const Head<const float>& dout,
                     const RowValues& rows, float* workspace) const {
    float *p = workspace, *d = workspace + kAttentionBlock * kAttentionBlock;
    for (std::int64_t key = 0; key < rows.length; key += kAttentionBlock) {
      bool first = rows.first_of_group;  // among the queries that see this block
      for (std::int64_t query = 0; query < sizes_.queries; query += kAttentionBlock) {
        const std::int64_t queries = std::min(kAttentionBlock, sizes_.queries - query);
        const std::int64_t seen = sizes_.seen(query + queries, rows.length);
        if (key >= seen) continue;
        const Block block{query, queries, key, std::min(kAttentionBlock, rows.length - key)};
        scores(in, block, p);
        gemm(queries, block.keys, sizes_.size, dout.view(query), in.v.view(key, true), {d, kAttentionBlock},
             band(block, Band::Of::result));
        attention_gradient(p, d, shape_of(block), rows.log_sums + query, rows.dots + query, scale_);
        add_gradients(in, gradients, dout, block, {p, d}, first);
        first = false;
      }
    }
  }

  /// Keys behind the sample's end have no part in the output.
  void clear_padding(const Heads<float>& gradients, std::int64_t length) const {
    for (const Head<float>* gradient : {&gradients.k, &gradients.v}) {
      if (gradient->data == nullptr) continue;
      for (std::int64_t key = length; key < sizes_.keys; ++key) std::fill_n(gradient->row(key), sizes_.size, 0.0F);
    }
  }

  struct Products {
    const float *p, *d;
  };

  void add_gradients(const Heads<const float>& in, const Heads<float>& gradients, const Head<const float>& dout,
                     const Block& block, const Products& made, bool first) const {
    const auto [query, queries, key, keys] = block;
    if (gradients.v.data != nullptr) {
      gemm(keys, sizes_.size, queries, {made.p, kAttentionBlock, true}, dout.view(query),
           {gradients.v.row(key), gradients.v.stride, !first}, band(block, Band::Of::left));
    }
    if (gradients.k.data != nullptr) {
      gemm(keys, sizes_.size, queries, {made.d, kAttentionBlock, true}, in.q.view(query),
           {gradients.k.row(key), gradients.k.stride, !first}, band(block, Band::Of::left));
    }
    if (gradients.q.data != nullptr) {
      gemm(queries, sizes_.size, keys, {made.d, kAttentionBlock}, in.k.view(key),
           {gradients.q.row(query), gradients.q.stride, key > 0}, band(block, Band::Of::left));
    }
  }

  AttentionSizes sizes_;
  float scale_;
};

}  // namespace

std::unique_ptr<Kernel> make_attention_cpu(const KernelRequest& request) {
  const AttentionSizes sizes(*request.attributes, request.inputs);
  return std::make_unique<AttentionCpu>(sizes, 1 / std::sqrt(static_cast<double>(sizes.size)));
}

}  // namespace lockstep::ops
