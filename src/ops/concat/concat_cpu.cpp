#include <algorithm>
#include <memory>
#include <vector>

#include "ops/concat/concat_runs.hpp"
#include "ops/elementwise.hpp"

namespace lockstep::ops {

namespace {

class ConcatCpu final : public Kernel {
 public:
  explicit ConcatCpu(ConcatRuns runs) : outer_(runs.outer), runs_(std::move(runs.runs)) {
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
  return std::make_unique<ConcatCpu>(concat_runs(request));
}

}  // namespace lockstep::ops
