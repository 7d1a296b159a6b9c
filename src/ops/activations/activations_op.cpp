// The ops of the table, and their kernels for CPUs.
#include <memory>
#include <string>

#include "device/cpu/lanes.hpp"
#include "ops/activations/activations.hpp"
#include "ops/elementwise.hpp"

namespace lockstep::ops {

namespace {

using device::Lanes;

template <class Formula>
LOCKSTEP_INLINE void apply(const float* x, float* y, std::int64_t n) {
  if constexpr (Formula::kOverLanes) {
    device::map(x, y, n, [](const Lanes& v) LOCKSTEP_INLINE_LAMBDA -> Lanes { return Formula::of(v); });
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = Formula::of(x[i]);
  }
}

/// `seen`: the output or the input.
template <class Formula>
LOCKSTEP_INLINE void apply_gradient(const float* seen, const float* dy, float* dx, std::int64_t n) {
  if constexpr (Formula::kOverLanes) {
    device::map(seen, dy, dx, n, [](const Lanes& v, const Lanes& dv) LOCKSTEP_INLINE_LAMBDA -> Lanes {
      return Formula::gradient(v, dv);
    });
  } else {
    for (std::int64_t i = 0; i < n; ++i) dx[i] = Formula::gradient(seen[i], dy[i]);
  }
}

// Plain functions, since a template cannot be LOCKSTEP_VECTORIZED.
#define LOCKSTEP_ACTIVATION_LOOPS(Formula, op)                                                            \
  LOCKSTEP_VECTORIZED void op##_forward(const float* x, float* y, std::int64_t n) {                       \
    apply<Formula>(x, y, n);                                                                              \
  }                                                                                                       \
  LOCKSTEP_VECTORIZED void op##_backward(const float* seen, const float* dy, float* dx, std::int64_t n) { \
    apply_gradient<Formula>(seen, dy, dx, n);                                                             \
  }
LOCKSTEP_ACTIVATIONS(LOCKSTEP_ACTIVATION_LOOPS)
#undef LOCKSTEP_ACTIVATION_LOOPS

struct ActivationLoops {
  void (*forward)(const float* x, float* y, std::int64_t n);
  void (*backward)(const float* seen, const float* dy, float* dx, std::int64_t n);
};

class ActivationCpu final : public Kernel {
 public:
  ActivationCpu(std::int64_t n, const ActivationLoops& loops, bool reads_output)
      : n_(n), loops_(loops), reads_output_(reads_output) {}

  void forward(const ForwardCall& call) override { loops_.forward(input(call), output(call), n_); }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    const float* seen = reads_output_ ? static_cast<const float*>(call.outputs[0]) : input(call);
    loops_.backward(seen, output_gradient(call), input_gradient(call), n_);
  }

 private:
  std::int64_t n_;
  ActivationLoops loops_;
  bool reads_output_;
};

template <class Formula>
OpDef make_activation(const std::string& name, const ActivationLoops& loops) {
  OpDef op;
  op.name = name;
  op.doc = Formula::kDoc;
  op.backward_reads = {.inputs = !Formula::kReadsOutput, .outputs = Formula::kReadsOutput};
  op.in_place = {.forward = true, .over_gradient = true, .over_input = !Formula::kReadsOutput};
  op.infer = [name](const Attributes&, std::span<const TensorSpec> inputs) { return same_floats(name, inputs[0]); };
  op.cost = elementwise_cost<Formula::kCost, Formula::kGradientCost>;
  op.kernels[DeviceKind::cpu] = [loops](const KernelRequest& request) {
    return std::make_unique<ActivationCpu>(request.outputs[0].elements(), loops, Formula::kReadsOutput);
  };
  return op;
}

}  // namespace

#define LOCKSTEP_MAKE_ACTIVATION(Formula, op)                            \
  OpDef make_##op() {                                                    \
    return make_activation<Formula>(#op, {op##_forward, op##_backward}); \
  }
LOCKSTEP_ACTIVATIONS(LOCKSTEP_MAKE_ACTIVATION)
#undef LOCKSTEP_MAKE_ACTIVATION

}  // namespace lockstep::ops
