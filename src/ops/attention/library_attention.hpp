// attention by a library's algorithms: one for the output and one for the gradients.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "device/layer_algorithms.hpp"
#include "ops/attention/attention_grid.hpp"
#include "ops/product_layer_grid.hpp"

namespace lockstep::ops {

/// Where a library writes the gradients of q, k and v.
struct GradientPointers {
  void *q, *k, *v;
};

/// Bytes of one of them, with two bytes per element.
inline std::size_t gradient_bytes(const AttentionSizes& sizes, std::int64_t positions) {
  const std::int64_t elements = sizes.batch * positions * sizes.heads * sizes.size;
  return aligned_for_libraries(static_cast<std::size_t>(elements) * sizeof(std::uint16_t));
}

/// Room for any two of them; if they are side by side in one tensor, either all are wanted or none.
inline std::size_t unwanted_gradient_bytes(const AttentionSizes& sizes) {
  if (sizes.packed) return 0;
  return gradient_bytes(sizes, std::max(sizes.queries, sizes.keys)) + gradient_bytes(sizes, sizes.keys);
}

/// A library writes all three, possibly concurrently: one or two that are not wanted (null) get separate memory in
/// `unwanted`.
inline GradientPointers gradient_places(const AttentionSizes& sizes, const QueryKeyValue<std::uint16_t>& wanted,
                                        std::byte* unwanted) {
  const auto pointer = [&](const HeadTensor<std::uint16_t>& gradient) -> void* {
    if (gradient.data != nullptr) return gradient.data;
    return std::exchange(unwanted, unwanted + gradient_bytes(sizes, gradient.positions));
  };
  return {pointer(wanted.q), pointer(wanted.k), pointer(wanted.v)};
}

/// In bfloat16 or float16. Library: device::CudnnAttention, or a class with the same functions.
template <class Library>
class LibraryAttention final : public Kernel {
 public:
  /// Without `gradients`, for inference.
  LibraryAttention(const AttentionSizes& sizes, Library output, std::optional<Library> gradients)
      : sizes_(sizes), output_(std::move(output)), gradients_(std::move(gradients)) {}

  /// The library's, followed by room for gradients that are not wanted.
  std::size_t workspace_bytes() const override {
    return library_bytes() + (gradients_ ? unwanted_gradient_bytes(sizes_) : 0);
  }
  std::string algorithms() const override {
    return device::LayerAlgorithms{output_.name(), gradients_ ? gradients_->name() : "", ""}.text();
  }

  void forward(const ForwardCall& call) override {
    const auto in = heads_of_inputs<const Half>(call.inputs, sizes_);
    auto* log_sums = gradients_ ? static_cast<float*>(call.saved[0]) : nullptr;
    output_.run(*stream_of(call),
                {.q = in.q.data, .k = in.k.data, .v = in.v.data, .out = call.outputs[0], .log_sums = log_sums},
                call.workspace);
  }

  void backward(const BackwardCall& call) override {
    const auto in = heads_of_inputs<const Half>(call.inputs, sizes_);
    const auto wanted = heads_of_inputs<Half>(call.input_gradients, sizes_);
    if (wanted.q.data == nullptr && wanted.k.data == nullptr && wanted.v.data == nullptr) return;
    const GradientPointers to =
        gradient_places(sizes_, wanted, static_cast<std::byte*>(call.workspace) + library_bytes());
    gradients_->run(*stream_of(call),
                    {.q = in.q.data,
                     .k = in.k.data,
                     .v = in.v.data,
                     .out = const_cast<void*>(call.outputs[0]),
                     .log_sums = const_cast<float*>(static_cast<const float*>(call.saved[0])),
                     .dout = call.output_gradients[0],
                     .dq = to.q,
                     .dk = to.k,
                     .dv = to.v},
                    call.workspace);
  }

 private:
  using Half = std::uint16_t;  ///< an element; it is never accessed, only pointed to

  std::size_t library_bytes() const {
    const std::size_t of_gradients = gradients_ ? gradients_->workspace_bytes() : 0;
    return aligned_for_libraries(std::max(output_.workspace_bytes(), of_gradients));
  }

  AttentionSizes sizes_;
  Library output_;
  std::optional<Library> gradients_;
};

}  // namespace lockstep::ops
