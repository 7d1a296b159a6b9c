#include "device/cuda/cudnn_attention.hpp"

#include "device/cuda/cudnn_frontend.hpp"

namespace lockstep::device {

namespace {

namespace graphs = cudnn_frontend::graph;
using cudnn_frontend::DataType_t;

// Ids of the operands in the graph.
constexpr std::int64_t kQ = 1, kK = 2, kV = 3, kOut = 4, kLogSums = 5, kDout = 6, kDq = 7, kDk = 8, kDv = 9;

graphs::Tensor_attributes log_sums(const AttentionLayout& layout) {
  const auto [batch, count, queries, size] = layout.q.sizes;
  return graphs::Tensor_attributes()
      .set_uid(kLogSums)
      .set_data_type(DataType_t::FLOAT)
      .set_dim({batch, count, queries, 1})
      .set_stride({count * queries, queries, 1, 1});
}

void describe_output(graphs::Graph& graph, const AttentionLayout& layout, bool with_log_sums) {
  graphs::SDPA_attributes attributes;
  attributes.set_generate_stats(with_log_sums).set_attn_scale(layout.scale);
  if (layout.causal) attributes.set_causal_mask(true);
  const auto [out, sums] =
      graph.sdpa(graph.tensor(cudnn_tensor(layout.q, kQ)), graph.tensor(cudnn_tensor(layout.k, kK)),
                 graph.tensor(cudnn_tensor(layout.v, kV)), attributes);
  make_cudnn_output(*out, layout.out, kOut);
  if (!with_log_sums) return;
  const graphs::Tensor_attributes wanted = log_sums(layout);
  sums->set_output(true).set_uid(kLogSums).set_data_type(DataType_t::FLOAT);
  sums->set_dim(wanted.get_dim()).set_stride(wanted.get_stride());
}

void describe_gradients(graphs::Graph& graph, const AttentionLayout& layout) {
  graphs::SDPA_backward_attributes attributes;
  attributes.set_attn_scale(layout.scale).set_deterministic_algorithm(true);
  if (layout.causal) attributes.set_causal_mask(true);
  const auto [dq, dk, dv] =
      graph.sdpa_backward(graph.tensor(cudnn_tensor(layout.q, kQ)), graph.tensor(cudnn_tensor(layout.k, kK)),
                          graph.tensor(cudnn_tensor(layout.v, kV)), graph.tensor(cudnn_tensor(layout.out, kOut)),
                          graph.tensor(cudnn_tensor(layout.out, kDout)), graph.tensor(log_sums(layout)), attributes);
  make_cudnn_output(*dq, layout.q, kDq);
  make_cudnn_output(*dk, layout.k, kDk);
  make_cudnn_output(*dv, layout.v, kDv);
}

std::string in_words(CudnnAttention::Direction direction, const AttentionLayout& l, bool with_log_sums) {
  std::string text = fmt::format("attention, direction {}, log sums {}, causal {}, scale {}, {}",
                                 static_cast<int>(direction), with_log_sums, l.causal, l.scale, name_of(l.dtype));
  for (const auto* heads : {&l.q, &l.k, &l.v, &l.out}) text += sizes_in_words(*heads);
  return text;
}

}  // namespace

std::optional<CudnnAttention> CudnnAttention::make(const CudnnTarget& target, const GpuPlace& place,
                                                   Direction direction, const AttentionLayout& layout,
                                                   bool with_log_sums, const WantedAlgorithm& wanted) {
  auto plan = CudnnPlan::make({target, place, wanted, in_words(direction, layout, with_log_sums), true, kMaxWorkspace},
                              [&](graphs::Graph& graph) {
                                set_cudnn_types(graph, layout.dtype);
                                if (direction == Direction::output) {
                                  describe_output(graph, layout, with_log_sums);
                                } else {
                                  describe_gradients(graph, layout);
                                }
                              });
  if (plan == nullptr) return std::nullopt;
  return CudnnAttention(std::move(plan));
}

void CudnnAttention::run(const GpuStream& stream, const Operands& operands, void* workspace) const {
  std::unordered_map<std::int64_t, void*> named = {{kQ, const_cast<void*>(operands.q)},
                                                   {kK, const_cast<void*>(operands.k)},
                                                   {kV, const_cast<void*>(operands.v)},
                                                   {kOut, operands.out}};
  if (operands.log_sums != nullptr) named[kLogSums] = operands.log_sums;
  if (operands.dout != nullptr) {
    named.insert(
        {{kDout, const_cast<void*>(operands.dout)}, {kDq, operands.dq}, {kDk, operands.dk}, {kDv, operands.dv}});
  }
  plan_->run(stream, "an attention of cuDNN", std::move(named), workspace);
}

}  // namespace lockstep::device
