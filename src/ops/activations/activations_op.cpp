// The ops of the table, and their kernels for CPUs.
#include <memory>
#include <string>

#include "device/cpu/lanes.hpp"
#include "ops/activation.hpp"
#include "ops/activations/activations.hpp"

namespace lockstep::ops {

namespace {

using device::Lanes;

// Plain functions, since a template cannot be LOCKSTEP_VECTORIZED.
#define LOCKSTEP_ACTIVATION_LOOPS(Formula, op)                                                            \
  LOCKSTEP_VECTORIZED void op##_forward(const float* x, float* y, std::int64_t n) {                       \
    device::map(x, y, n, [](const Lanes& v) LOCKSTEP_INLINE_LAMBDA -> Lanes { return Formula::of(v); });  \
  }                                                                                                       \
  LOCKSTEP_VECTORIZED void op##_backward(const float* seen, const float* dy, float* dx, std::int64_t n) { \
    device::map(seen, dy, dx, n, [](const Lanes& v, const Lanes& dv) LOCKSTEP_INLINE_LAMBDA -> Lanes {    \
      return Formula::gradient(v, dv);                                                                    \
    });                                                                                                   \
  }
LOCKSTEP_ACTIVATIONS(LOCKSTEP_ACTIVATION_LOOPS)
#undef LOCKSTEP_ACTIVATION_LOOPS

struct ActivationLoops {
  void (*forward)(const float* x, float* y, std::int64_t n);
  void (*backward)(const float* seen, const float* dy, float* dx, std::int64_t n);
  bool reads_output;
};

class ActivationCpu final : public Kernel {
 public:
  ActivationCpu(std::int64_t n, const ActivationLoops& loops) : n_(n), loops_(loops) {}

  void forward(const ForwardCall& call) override { loops_.forward(input(call), output(call), n_); }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    const float* seen = loops_.reads_output ? static_cast<const float*>(call.outputs[0]) : input(call);
    loops_.backward(seen, output_gradient(call), input_gradient(call), n_);
  }

 private:
  std::int64_t n_;
  ActivationLoops loops_;
};

OpDef make_activation(const std::string& name, const std::string& doc, const ActivationLoops& loops) {
  OpDef op = activation(name, doc, loops.reads_output);
  op.kernels[DeviceKind::cpu] = [loops](const KernelRequest& request) {
    return std::make_unique<ActivationCpu>(request.outputs[0].elements(), loops);
  };
  return op;
}

}  // namespace

#define LOCKSTEP_MAKE_ACTIVATION(Formula, op)                                                         \
  OpDef make_##op() {                                                                                 \
    return make_activation(#op, Formula::kDoc, {op##_forward, op##_backward, Formula::kReadsOutput}); \
  }
LOCKSTEP_ACTIVATIONS(LOCKSTEP_MAKE_ACTIVATION)
#undef LOCKSTEP_MAKE_ACTIVATION

}  // namespace lockstep::ops
