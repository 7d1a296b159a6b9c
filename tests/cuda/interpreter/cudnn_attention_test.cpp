// Attention by the stand-in for cuDNN: graphs that cuDNN's own frontend takes apart, which engines are proposed for
// them, small results that can be told by hand, and what is said of operands that are wrong. That it computes what the
// CPU does is tested by the op's own cases (libraries_test.py).
#include <cudnn.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "cuda/interpreter/cudnn_planted.hpp"
#include "cuda/interpreter/library_elements.hpp"
#include "device/cuda/cudnn_frontend.hpp"
#include "device/gpu/attention_layout.hpp"

namespace lockstep::ptx {

namespace {

using AttentionGraph = cudnn_frontend::graph::Graph;
using cudnn_frontend::graph::Tensor_attributes;
using device::AttentionLayout;
using Pointers = std::unordered_map<std::int64_t, void*>;

constexpr std::int64_t kHeads = 2, kPositions = 6, kSize = 8, kWidth = kHeads * kSize;
constexpr std::size_t kTensor = kPositions * kWidth * 2, kRows = kHeads * kPositions * 4;  // bytes
// Numbers of tensors, and of engines among those proposed.
constexpr std::int64_t kUidQ = 1, kUidK = 2, kUidV = 3, kUidOut = 4, kUidLogSums = 5, kUidDout = 6, kUidDq = 7,
                       kUidDk = 8, kUidDv = 9;
constexpr std::int64_t kPlanInParts = 2, kPlainPlan = 3;

AttentionLayout small_layout(bool causal, DType dtype = DType::bf16) {
  const auto one = device::heads_layout(1, kHeads, kPositions, kSize, kWidth);
  return {.q = one,
          .k = one,
          .v = one,
          .out = one,
          .causal = causal,
          .scale = 1 / std::sqrt(static_cast<float>(kSize)),
          .dtype = dtype};
}

Tensor_attributes log_sums_of_heads() {
  Tensor_attributes tensor;
  tensor.set_uid(kUidLogSums).set_data_type(cudnn_frontend::DataType_t::FLOAT);
  tensor.set_dim({1, kHeads, kPositions, 1}).set_stride({kHeads * kPositions, kPositions, 1, 1});
  return tensor;
}

std::unique_ptr<AttentionGraph> output_graph(const AttentionLayout& layout, bool with_log_sums) {
  auto graph = std::make_unique<AttentionGraph>();
  device::set_cudnn_types(*graph, layout.dtype);
  cudnn_frontend::graph::SDPA_attributes attributes;
  attributes.set_generate_stats(with_log_sums).set_attn_scale(layout.scale);
  if (layout.causal) attributes.set_causal_mask(true);
  const auto [out, sums] = graph->sdpa(graph->tensor(device::cudnn_tensor(layout.q, kUidQ)),
                                       graph->tensor(device::cudnn_tensor(layout.k, kUidK)),
                                       graph->tensor(device::cudnn_tensor(layout.v, kUidV)), attributes);
  device::make_cudnn_output(*out, layout.out, kUidOut);
  if (with_log_sums) {
    sums->set_output(true).set_uid(kUidLogSums).set_data_type(cudnn_frontend::DataType_t::FLOAT);
    sums->set_dim(log_sums_of_heads().get_dim()).set_stride(log_sums_of_heads().get_stride());
  }
  return graph;
}

std::unique_ptr<AttentionGraph> gradient_graph(const AttentionLayout& layout, bool deterministic = true) {
  auto graph = std::make_unique<AttentionGraph>();
  device::set_cudnn_types(*graph, layout.dtype);
  cudnn_frontend::graph::SDPA_backward_attributes attributes;
  attributes.set_attn_scale(layout.scale).set_deterministic_algorithm(deterministic);
  if (layout.causal) attributes.set_causal_mask(true);
  const auto input = [&](const device::HeadsLayout& heads, std::int64_t name) {
    return graph->tensor(device::cudnn_tensor(heads, name));
  };
  const auto [dq, dk, dv] = graph->sdpa_backward(input(layout.q, kUidQ), input(layout.k, kUidK), input(layout.v, kUidV),
                                                 input(layout.out, kUidOut), input(layout.out, kUidDout),
                                                 graph->tensor(log_sums_of_heads()), attributes);
  device::make_cudnn_output(*dq, layout.q, kUidDq);
  device::make_cudnn_output(*dk, layout.k, kUidDk);
  device::make_cudnn_output(*dv, layout.v, kUidDv);
  return graph;
}

class CudnnAttentionChecks : public CudnnPlanted {
 protected:
  /// The workspaces of all plans that are proposed; none: why not.
  std::vector<std::int64_t> plan(AttentionGraph& graph) {
    const auto built = graph.validate().is_good() && graph.build_operation_graph(handle_).is_good();
    EXPECT_TRUE(built);
    std::vector<std::int64_t> workspaces;
    if (!built || graph.create_execution_plans({cudnn_frontend::HeurMode_t::A}).is_bad()) return workspaces;
    for (std::int64_t i = 0; i < graph.get_execution_plan_count(); ++i) {
      EXPECT_TRUE(graph.build_plan_at_index(i).is_good());
      workspaces.push_back(graph.get_workspace_size_plan_at_index(i));
    }
    return workspaces;
  }
  bool enqueue(AttentionGraph& graph, std::int64_t engine, Pointers pointers, void* workspace) {
    return graph.execute_plan_at_index(handle_, pointers, workspace, engine).is_good();
  }
  /// Enqueues it, waits, and says what was found.
  std::string run_and_look(AttentionGraph& graph, std::int64_t engine, const Pointers& pointers, void* workspace) {
    machine().problems.clear();
    EXPECT_TRUE(enqueue(graph, engine, pointers, workspace));
    (void)cudaStreamSynchronize(stream_);
    const Texts texts = found();
    if (texts.empty()) return "nothing";
    return texts[0].substr(0, texts[0].find(';'));
  }

  /// value(position) for all channels, in bfloat16.
  template <class Value>
  void fill(const Block& tensor, const Value& value) {
    const Block pinned(kTensor, true);
    std::vector<float> floats;
    for (std::int64_t i = 0; i < kPositions * kWidth; ++i) {
      const std::int64_t position = i / kWidth;
      floats.push_back(value(static_cast<float>(position)));
    }
    from_floats(Element::bf16, floats, static_cast<u8*>(pinned.get()));
    EXPECT_EQ(cudaMemcpyAsync(tensor.get(), pinned.get(), kTensor, cudaMemcpyHostToDevice, stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  }
  std::vector<float> values(const Block& tensor, Element element, std::size_t bytes) {
    const Block pinned(bytes, true);
    EXPECT_EQ(cudaMemcpyAsync(pinned.get(), tensor.get(), bytes, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    return to_floats(element, static_cast<const u8*>(pinned.get()), bytes / bytes_of(element));
  }
  /// All channels of each position have the value.
  template <class Value>
  void expect_values(const Block& tensor, const Value& value, const char* what) {
    const auto all = values(tensor, Element::bf16, kTensor);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t position = i / kWidth;
      const auto expected = value(static_cast<float>(position));
      EXPECT_NEAR(all[i], expected, std::abs(expected) / 64 + 1e-3) << what << ", element " << i;
    }
  }
};

}  // namespace

TEST_F(CudnnAttentionChecks, ProposesEnginesForWhatCudnnComputes) {
  constexpr std::int64_t kTiB = std::int64_t{1} << 40, kScores = kHeads * kPositions * kPositions * 4,
                         kOwn = kRows;  // the frontend's, before that of the engine
  using Bytes = std::vector<std::int64_t>;
  for (const bool causal : {true, false}) {
    for (const bool with_log_sums : {true, false}) {
      EXPECT_EQ(plan(*output_graph(small_layout(causal), with_log_sums)), (Bytes{0, kTiB, kScores, 0}));
    }
    EXPECT_EQ(plan(*gradient_graph(small_layout(causal, DType::f16))),
              (Bytes{kOwn, kOwn + kTiB, kOwn + kScores, kOwn}));
  }
  EXPECT_EQ(plan(*gradient_graph(small_layout(true, DType::f32))), Bytes());
  EXPECT_EQ(plan(*output_graph(small_layout(false, DType::f32), true)), Bytes());
  EXPECT_EQ(found(), Texts());
}

// The module strikes out what is not deterministic: nothing is left of a gradient that is added up in memory.
TEST_F(CudnnAttentionChecks, OnlyTheDeterministicGradientsHaveAnOrder) {
  using cudnn_frontend::NumericalNote_t;
  const auto left = [&](bool deterministic) {
    const auto graph = gradient_graph(small_layout(true), deterministic);
    const std::size_t proposed = plan(*graph).size();
    graph->deselect_numeric_notes({NumericalNote_t::NONDETERMINISTIC});
    return std::pair(proposed, graph->check_support().is_good());
  };
  EXPECT_EQ(left(true), std::pair(std::size_t{4}, true));
  EXPECT_EQ(left(false), std::pair(std::size_t{1}, false));
  const auto on_cores = gradient_graph(small_layout(true));
  (void)plan(*on_cores);
  on_cores->deselect_numeric_notes({NumericalNote_t::TENSOR_CORE});
  EXPECT_FALSE(on_cores->check_support().is_good());
}

// q is 0, so all keys that are seen count alike; k and v are the number of their position, t and its mean t / 2.
TEST_F(CudnnAttentionChecks, AveragesWhatAQuerySees) {
  const Block q(kTensor), k(kTensor), v(kTensor), out(kTensor), log_sums(kRows), workspace(4096);
  const Block dout(kTensor), dq(kTensor), dk(kTensor), dv(kTensor);
  clear(q.get(), kTensor);
  for (const Block* tensor : {&k, &v}) fill(*tensor, [](float position) { return position; });
  fill(dout, [](float) { return 1.0F; });
  const Pointers forward = {
      {kUidQ, q.get()}, {kUidK, k.get()}, {kUidV, v.get()}, {kUidOut, out.get()}, {kUidLogSums, log_sums.get()}};
  Pointers backward = forward;
  backward.insert({{kUidDout, dout.get()}, {kUidDq, dq.get()}, {kUidDk, dk.get()}, {kUidDv, dv.get()}});
  for (const bool causal : {true, false}) {
    const auto seen = [&](float t) { return causal ? t + 1 : static_cast<float>(kPositions); };
    const auto output = output_graph(small_layout(causal), true), gradients = gradient_graph(small_layout(causal));
    (void)plan(*output);
    (void)plan(*gradients);
    for (const std::int64_t engine : {kPlanInParts, kPlainPlan}) {
      EXPECT_EQ(run_and_look(*output, engine, forward, workspace.get()), "nothing");
      EXPECT_EQ(run_and_look(*gradients, engine, backward, workspace.get()), "nothing");
      expect_values(
          out, [&](float t) { return (seen(t) - 1) / 2; }, "out");
      const auto sums = values(log_sums, Element::fp32, kRows);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        EXPECT_NEAR(sums[i], std::log(seen(static_cast<float>(i % kPositions))), 1e-6);
      }
      const float scale = small_layout(causal).scale;
      // Of n keys 0, 1, ... the variance is (n^2 - 1) / 12; a score's gradient has all channels of v.
      expect_values(
          dq, [&](float t) { return scale * kSize * (seen(t) * seen(t) - 1) / 12; }, "dq");
      expect_values(
          dk, [](float) { return 0.0F; }, "dk");
      expect_values(
          dv,
          [&](float s) {
            float sum = 0;
            for (std::int64_t t = 0; t < kPositions; ++t) {
              const auto query = static_cast<float>(t);
              if (!causal || query >= s) sum += 1 / seen(query);
            }
            return sum;
          },
          "dv");
    }
  }
}

TEST_F(CudnnAttentionChecks, WhatItReadsAndWritesIsChecked) {
  const Block q(kTensor), k(kTensor), v(kTensor), out(kTensor), log_sums(kRows), dout(kTensor), workspace(4096);
  const Block dq(kTensor), dk(kTensor), dv(kTensor);
  Pointers forward = {{kUidQ, q.get()}, {kUidK, k.get()}, {kUidV, v.get()}, {kUidOut, out.get()}};
  const auto output = output_graph(small_layout(true), false), gradients = gradient_graph(small_layout(true));
  (void)plan(*output);
  (void)plan(*gradients);
  constexpr const char* kUnwritten = "a kernel of cuDNN reads memory that nobody wrote";
  constexpr const char* kOverlap = "a kernel of cuDNN races: writes what another thread of the launch reads";
  for (const Block* operand : {&q, &k, &v}) {
    EXPECT_EQ(run_and_look(*output, kPlainPlan, forward, nullptr), kUnwritten);
    clear(operand->get(), kTensor);
  }
  EXPECT_EQ(run_and_look(*output, kPlainPlan, forward, nullptr), "nothing");
  // The output was made without the sums that the gradients need.
  Pointers backward = forward;
  backward.insert({{kUidLogSums, log_sums.get()},
                   {kUidDout, dout.get()},
                   {kUidDq, dq.get()},
                   {kUidDk, dk.get()},
                   {kUidDv, dv.get()}});
  clear(dout.get(), kTensor);
  EXPECT_EQ(run_and_look(*gradients, kPlanInParts, backward, workspace.get()), kUnwritten);
  clear(log_sums.get(), kRows);
  EXPECT_EQ(run_and_look(*gradients, kPlanInParts, backward, workspace.get()), "nothing");
  backward[kUidDv] = q.get();
  EXPECT_EQ(run_and_look(*gradients, kPlanInParts, backward, workspace.get()), kOverlap);
  forward[kUidOut] = k.get();
  EXPECT_EQ(run_and_look(*output, kPlainPlan, forward, nullptr), kOverlap);
  forward[kUidOut] = workspace.get();
  EXPECT_EQ(run_and_look(*output, kPlanInParts, forward, workspace.get()), kOverlap);
}

TEST_F(CudnnAttentionChecks, WhatLiesOutsideOfMemoryIsSaid) {
  const Block q(kTensor), k(kTensor), v(kTensor), out(kTensor), small(kTensor / 2);
  for (const Block* operand : {&q, &k, &v}) clear(operand->get(), kTensor);
  const auto look = [&](const AttentionLayout& layout, void* to) {
    const auto graph = output_graph(layout, false);
    (void)plan(*graph);
    return run_and_look(*graph, kPlainPlan, {{kUidQ, q.get()}, {kUidK, k.get()}, {kUidV, v.get()}, {kUidOut, to}},
                        nullptr);
  };
  AttentionLayout side_by_side = small_layout(false);  // where they are not
  side_by_side.k = device::heads_layout(1, kHeads, kPositions, kSize, 3 * kWidth);
  EXPECT_EQ(look(small_layout(false), out.get()), "nothing");
  EXPECT_EQ(look(side_by_side, out.get()), "a kernel of cuDNN reads outside of memory");
  EXPECT_EQ(look(small_layout(true), small.get()), "a kernel of cuDNN writes outside of memory");
  machine().problems.clear();  // a GPU that is broken frees nothing
}

TEST_F(CudnnAttentionChecks, NoWorkspaceIsSaid) {
  const Block memory(kTensor);
  const auto output = output_graph(small_layout(true), false);
  (void)plan(*output);
  const Pointers all = {{kUidQ, memory.get()}, {kUidK, memory.get()}, {kUidV, memory.get()}, {kUidOut, memory.get()}};
  EXPECT_FALSE(enqueue(*output, kPlanInParts, all, nullptr));
  EXPECT_EQ(found(), Texts{"cuDNN: no workspace"});
}

}  // namespace lockstep::ptx
