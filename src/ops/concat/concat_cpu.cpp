#include <algorithm>
#include <memory>
#include <vector>

#include "ops/elementwise.hpp"

namespace lockstep::ops {

namespace {

/// Every tensor is `outer` runs; a run of the output is the inputs' runs one after another.
class ConcatCpu final : public Kernel {
 public:
  ConcatCpu(std::int64_t outer, std::vector<std::int64_t> runs) : outer_(outer), runs_(std::move(runs)) {
    for (const auto run : runs_) total_ += run;
  }

  void forward(const ForwardCall& call) override {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      for (std::int64_t o = 0; o < outer_; ++o) {
        std::copy_n(input(call, i) + o * runs_[i], runs_[i], output(call) + o * total_ + at);
      }
      at += runs_[i];
    }
  }

  void backward(const BackwardCall& call) override {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      float* dx = input_gradient(call, i);
      for (std::int64_t o = 0; dx != nullptr && o < outer_; ++o) {
        std::copy_n(output_gradient(call) + o * total_ + at, runs_[i], dx + o * runs_[i]);
      }
      at += runs_[i];
    }
  }

 private:
  std::int64_t outer_, total_ = 0;
  std::vector<std::int64_t> runs_;
};

}  // namespace

std::unique_ptr<Kernel> make_concat_cpu(const KernelRequest& request) {
  const auto rank = static_cast<std::int64_t>(request.inputs[0].shape.size());
  const std::int64_t given = request.attributes->integer("axis"), axis = given < 0 ? given + rank : given;
  const auto product = [](const Shape& shape, std::int64_t from, std::int64_t to) {
    return elements(Shape(shape.begin() + from, shape.begin() + to));
  };
  std::vector<std::int64_t> runs;
  for (const auto& input : request.inputs) runs.push_back(product(input.shape, axis, rank));
  return std::make_unique<ConcatCpu>(product(request.inputs[0].shape, 0, axis), std::move(runs));
}

}  // namespace lockstep::ops
