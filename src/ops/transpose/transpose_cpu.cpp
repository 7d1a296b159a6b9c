#include <algorithm>
#include <memory>
#include <vector>

#include "ops/elementwise.hpp"
#include "ops/transpose/transpose_walk.hpp"

namespace lockstep::ops {

namespace {

class TransposeCpu final : public Kernel {
 public:
  explicit TransposeCpu(TransposeWalk walk)
      : shape_(std::move(walk.shape)), strides_(std::move(walk.strides)), index_(shape_.size()) {}

  void forward(const ForwardCall& call) override {
    const float* x = input(call);
    float* y = output(call);
    walk([&](std::int64_t in, std::int64_t out) { y[out] = x[in]; });
  }

  void backward(const BackwardCall& call) override {
    float* dx = input_gradient(call);
    if (dx == nullptr) return;
    const float* dy = output_gradient(call);
    walk([&](std::int64_t in, std::int64_t out) { dx[in] = dy[out]; });
  }

 private:
  /// Calls visit(index in the input, index in the output) in the output's order.
  template <class Visit>
  void walk(const Visit& visit) {
    const std::int64_t inner = shape_.back(), step = strides_.back(), runs = inner == 0 ? 0 : elements(shape_) / inner;
    std::fill(index_.begin(), index_.end(), 0);
    std::int64_t in = 0, out = 0;
    for (std::int64_t run = 0; run < runs; ++run) {
      for (std::int64_t i = 0; i < inner; ++i) visit(in + i * step, out++);
      for (auto d = static_cast<std::ptrdiff_t>(shape_.size()) - 2; d >= 0; --d) {
        const auto at = static_cast<std::size_t>(d);
        in += strides_[at];
        if (++index_[at] < shape_[at]) break;
        in -= strides_[at] * shape_[at];
        index_[at] = 0;
      }
    }
  }

  Shape shape_;
  std::vector<std::int64_t> strides_, index_;
};

}  // namespace

std::unique_ptr<Kernel> make_transpose_cpu(const KernelRequest& request) {
  return std::make_unique<TransposeCpu>(transpose_walk(request));
}

}  // namespace lockstep::ops
