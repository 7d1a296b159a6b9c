// attention by cuDNN in bf16 and fp16, output and gradients with a plan each; where there is none for both, and in
// fp32, by the kernel over a Grid, which what is narrow is widened for.
#include <algorithm>

#include "backend/cuda/cuda_grid.cuh"
#include "backend/cuda/cudnn_attention.hpp"
#include "ops/attention/attention_grid.hpp"
#include "ops/attention/attention_layout.hpp"
#include "ops/product_layer_grid.hpp"

namespace lockstep::ops {

namespace {

using backend::CudnnAttention;
using Narrow = std::uint16_t;  ///< an element, which is only pointed to

class CudnnAttentionKernel final : public Kernel {
 public:
  /// Null where cuDNN does not compute all of it.
  static std::unique_ptr<Kernel> make(const KernelRequest& request, const AttentionSizes& sizes) {
    const auto layout = attention_layout(sizes, *common_element(request));
    const bool training = request.mode == Mode::training;
    if (training && !library_gradients_hold(sizes)) return nullptr;
    const auto wanted = backend::PlanParts::of(request.plan);
    const auto plan = [&](CudnnAttention::Direction direction, const std::string& name) {
      return CudnnAttention::make(request.queue->cudnn_target(), request.queue->place(), direction, layout, training,
                                  {request.node, name});
    };
    auto output = plan(CudnnAttention::Direction::output, wanted.output);
    auto gradients = training && output ? plan(CudnnAttention::Direction::gradients, wanted.input_gradient)
                                        : std::optional<CudnnAttention>();
    if (!output || (training && !gradients)) return nullptr;
    return std::unique_ptr<Kernel>(new CudnnAttentionKernel(sizes, *std::move(output), std::move(gradients)));
  }

  /// cuDNN's, and behind it room for gradients that nobody wants.
  [[nodiscard]] std::size_t workspace_bytes() const override {
    const std::size_t own = library_bytes();
    return sizes_.packed || !gradients_ ? own : own + static_cast<std::size_t>(most_elements()) * sizeof(Narrow);
  }
  [[nodiscard]] std::string plan() const override {
    return backend::PlanParts{output_.name(), gradients_ ? gradients_->name() : "", ""}.text();
  }

  void forward(const ForwardCall& call) override {
    const auto in = heads_of_inputs<const Narrow>(call.inputs, sizes_);
    auto* log_sums = gradients_ ? static_cast<float*>(call.saved[0]) : nullptr;
    output_.run(*call.queue,
                {.q = in.q.data, .k = in.k.data, .v = in.v.data, .out = call.outputs[0], .log_sums = log_sums},
                call.workspace);
  }

  void backward(const BackwardCall& call) override {
    const auto in = heads_of_inputs<const Narrow>(call.inputs, sizes_);
    const auto to = heads_of_inputs<Narrow>(call.input_gradients, sizes_);
    if (to.q.data == nullptr && to.k.data == nullptr && to.v.data == nullptr) return;
    void* const unwanted = static_cast<std::byte*>(call.workspace) + library_bytes();
    const auto place = [unwanted](Narrow* gradient) -> void* { return gradient == nullptr ? unwanted : gradient; };
    gradients_->run(*call.queue,
                    {.q = in.q.data,
                     .k = in.k.data,
                     .v = in.v.data,
                     .out = const_cast<void*>(call.outputs[0]),
                     .log_sums = const_cast<float*>(static_cast<const float*>(call.saved[0])),
                     .dout = call.output_gradients[0],
                     .dq = place(to.q.data),
                     .dk = place(to.k.data),
                     .dv = place(to.v.data)},
                    call.workspace);
  }

 private:
  CudnnAttentionKernel(const AttentionSizes& sizes, CudnnAttention output, std::optional<CudnnAttention> gradients)
      : sizes_(sizes), output_(std::move(output)), gradients_(std::move(gradients)) {}

  [[nodiscard]] std::int64_t most_elements() const {
    return sizes_.batch * std::max(sizes_.queries, sizes_.keys) * sizes_.heads * sizes_.size;
  }
  [[nodiscard]] std::size_t library_bytes() const {
    const std::size_t of_gradients = gradients_ ? gradients_->workspace_bytes() : 0;
    return aligned_for_libraries(std::max(output_.workspace_bytes(), of_gradients));
  }

  AttentionSizes sizes_;
  CudnnAttention output_;
  std::optional<CudnnAttention> gradients_;
};

}  // namespace

std::unique_ptr<Kernel> make_attention_cuda(const KernelRequest& request) {
  const auto element = common_element(request);
  if (request.queue != nullptr && element && is_narrow(*element)) {
    const AttentionSizes sizes(*request.attributes, request.inputs);
    return sizes.batch == 0 || sizes.queries == 0 ? nullptr : CudnnAttentionKernel::make(request, sizes);
  }
  const std::string own(backend::kOwnKernel);
  return make_planned_attention_grid<backend::CudaGrid>(request, backend::PlanParts{own, own, ""}.text());
}

}  // namespace lockstep::ops
