// dropout: in training each element is 0 with probability `rate`, else divided by 1 - rate; in inference y = x.
//
// The mask is a function of the job's seed, the node's name, the step, the sample's position in the global batch and
// the element's row-major index in the sample; nothing is stored, and backward draws it again.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "core/vectorize.hpp"
#include "lockstep/error.hpp"
#include "ops/dropout/dropout_mask.hpp"
#include "ops/elementwise.hpp"
#include "ops/onnx_scope.hpp"

namespace lockstep::ops {

namespace {

constexpr std::int64_t kMaskLanes = 16, kGroup = 64;

/// philox() for 16 counters: the 64 words of one group of elements. The rounds are the inner, unrolled loop, so that
/// the loop over lanes is vectorised.
LOCKSTEP_VECTORIZED void draw_group(std::uint64_t key, std::uint64_t first_block, std::uint64_t position,
                                    std::uint32_t* words) {
  for (std::uint32_t lane = 0; lane < kMaskLanes; ++lane) {
    std::uint32_t c0 = static_cast<std::uint32_t>(first_block) + lane;  // a multiple of 16: no carry
    std::uint32_t c1 = first_block >> 32;
    std::uint32_t c2 = position, c3 = position >> 32;
    std::uint32_t key0 = key, key1 = key >> 32;
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c0, p1 = std::uint64_t{0xCD9E8D57} * c2;
      c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ key0;
      c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ key1;
      c1 = p1;
      c3 = p0;
      key0 += 0x9E3779B9;
      key1 += 0xBB67AE85;
    }
    words[lane] = c0;
    words[lane + kMaskLanes] = c1;
    words[lane + 2 * kMaskLanes] = c2;
    words[lane + 3 * kMaskLanes] = c3;
  }
}

LOCKSTEP_VECTORIZED void keep(const std::uint32_t* words, std::uint32_t threshold, float scale, const float* x,
                              float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = words[i] >= threshold ? x[i] * scale : 0.0F;
}

class DropoutCpu final : public Kernel {
 public:
  DropoutCpu(std::string_view node, double rate, const TensorSpec& spec, Mode mode)
      : layer_(hash_name(node)),
        batch_(spec.shape[0]),
        size_(batch_ == 0 ? 0 : spec.elements() / batch_),
        active_(mode == Mode::training && rate > 0),
        threshold_(dropout_threshold(rate)),
        scale_(1 / (1 - rate)) {}

  void forward(const ForwardCall& call) override { apply(call.step, input(call), output(call)); }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) != nullptr) apply(call.step, output_gradient(call), input_gradient(call));
  }

 private:
  void apply(const StepContext* step, const float* x, float* y) const {
    if (!active_) {
      if (batch_ * size_ > 0) std::memcpy(y, x, (batch_ * size_) * sizeof(float));
      return;
    }
    LOCKSTEP_CHECK(step != nullptr, "dropout needs the step");
    const std::uint64_t key = dropout_key(*step, layer_);
    std::uint32_t words[kGroup];
    for (std::int64_t sample = 0; sample < batch_; ++sample) {
      const std::uint64_t position = step->first_position + sample;
      for (std::int64_t e = 0; e < size_; e += kGroup) {
        draw_group(key, e / kGroup * kMaskLanes, position, words);
        const std::int64_t at = sample * size_ + e;
        keep(words, threshold_, scale_, x + at, y + at, std::min(kGroup, size_ - e));
      }
    }
  }

  std::uint64_t layer_;
  std::int64_t batch_, size_;
  bool active_;
  std::uint32_t threshold_;
  float scale_;
};

std::unique_ptr<Kernel> make_dropout_cpu(const KernelRequest& request) {
  return std::make_unique<DropoutCpu>(request.node, request.attributes->number("rate"), request.inputs[0],
                                      request.mode);
}

Signature infer_dropout(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  if (inputs[0].shape.empty() || inputs[0].dtype != DType::f32) {
    throw Error(ExitCode::configuration, fmt::format("dropout: expected an input [batch, ...] of f32, found {} of {}",
                                                     to_string(inputs[0].shape), name_of(inputs[0].dtype)));
  }
  return same_shape(attributes, inputs);
}

}  // namespace

OpDef make_dropout() {
  OpDef op;
  op.name = "dropout";
  op.doc = "zeroes random elements in training";
  op.attributes = {{.name = "rate",
                    .kind = AttributeKind::number,
                    .doc = "probability that an element is zeroed",
                    .minimum = 0,
                    .maximum = 1,
                    .below_maximum = true}};
  op.shorthand = "rate";
  op.in_place = {.forward = true, .over_gradient = true};
  op.infer = infer_dropout;
  op.cost = elementwise_cost<15, 15>;
  op.kernels[DeviceKind::cpu] = make_dropout_cpu;
  return op;
}

void dropout_to_onnx(OnnxScope& scope) {
  const Layout layout = scope.layout();
  scope.result(scope.input(0, layout), layout);
}

}  // namespace lockstep::ops
