// What cuDNN would answer on a GPU, found out without one: cuDNN plans and compiles for GPUs that are only described to
// it. This shows which of our models' convolutions and attentions it computes under our rules, and which it leaves to
// our own kernels; the results of the plans can be checked only on GPUs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/low_precision.hpp"
#include "cuda/described_gpu.hpp"
#include "cuda/numerical_notes.hpp"
#include "device/cuda/cudnn_attention.hpp"
#include "device/cuda/cudnn_convolution.hpp"
#include "device/cuda/nvrtc.hpp"
#include "graph/lowering/lower.hpp"
#include "graph/precision.hpp"
#include "lockstep/error.hpp"
#include "lockstep/trainer.hpp"
#include "ops/attention/attention_layout.hpp"
#include "ops/conv/conv_layout.hpp"

namespace lockstep {

namespace {

using device::CudnnAttention;
using device::CudnnConvolution;
using Direction = CudnnConvolution::Direction;

const device::GpuPlace kPlace{"node7", 3, "GPU 1 (a card, 0000:3b:00.0)", 120, "conv 'first'"};

struct Net {
  const char* model;
  std::map<std::string, Attribute> settings;
  TensorSpec sample;
  std::int64_t classes = 10;
};

const Net kResNet20{"resnet", {{"depth", std::int64_t{20}}}, {DType::f32, {32, 32, 3}}};
const Net kResNet50{"resnet", {{"depth", std::int64_t{50}}}, {DType::f32, {224, 224, 3}}, 1000};
const Net kLeNet{"lenet", {}, {DType::f32, {28, 28, 1}}};

struct Products {
  DType dtype = DType::f32;
  bool tf32 = false;
};

/// One direction of one of a net's convolutions, in the form that conv's kernel asks for.
struct Question {
  std::string name;
  CudnnConvolution::Kind kind;
  device::ConvolutionLayout layout;
};

class CudnnPlans : public testing::TestWithParam<device::DescribedGpu> {
 protected:
  static void SetUpTestSuite() { device::open_nvrtc_builtins(); }

  static Graph graph_of(const Net& net, const Products& precision) {
    static const Registries registries = Registries::built_in();
    const ModelDef& definition = registries.models.at(net.model);
    GraphBuilder builder(registries.ops, 32);
    ModelContext context;
    context.inputs = {{"input", builder.input("input", net.sample)}};
    context.classes = net.classes;
    definition.build(builder, complete(definition.attributes, Attributes(net.settings), net.model), context);
    Graph graph = std::move(builder.graph());
    set_precision(graph, precision.dtype);
    if (precision.tf32) allow_tf32(graph);
    return lower(std::move(graph), {DeviceKind::cuda, &registries.ops});
  }

  /// Each layout once. The first convolution's image needs no gradient.
  static std::vector<Question> questions(const Net& net, const Products& precision) {
    std::vector<Question> all;
    std::set<std::pair<std::array<std::int64_t, 4>, std::array<std::int64_t, 4>>> seen;
    const Graph graph = graph_of(net, precision);
    for (const Node& node : graph.nodes) {
      if (node.op->name != "conv") continue;
      const TensorSpec& in = graph.values[static_cast<std::size_t>(node.inputs[0])].spec;
      const TensorSpec& out = graph.values[static_cast<std::size_t>(node.outputs[0])].spec;
      const ops::ConvShape shape = ops::conv_shape(node.attributes, in);
      const auto layout = ops::convolution_layout(shape);
      if (!seen.emplace(layout.weight.sizes, layout.image.sizes).second) continue;
      const auto ask = [&](Direction direction, bool bias, DType result, const char* what, bool relu = false) {
        all.push_back(
            {node.name + what, {direction, bias, {node.compute_type, result, node.fast_float32}, relu}, layout});
      };
      ask(Direction::output, shape.bias, out.dtype, ": output");
      if (node.epilogue != nullptr) ask(Direction::output, shape.bias, out.dtype, ": output, relu", true);
      if (!all.empty() && seen.size() > 1) ask(Direction::image_gradient, false, in.dtype, ": image's gradient");
      ask(Direction::weight_gradient, false, DType::f32, ": weight's gradient");
    }
    return all;
  }

  [[nodiscard]] std::optional<CudnnConvolution> plan(const Question& question, const std::string& wanted = "") const {
    return CudnnConvolution::make(target_, kPlace, question.kind, question.layout, {"first", wanted});
  }

  /// With two-byte factors there is a plan for all but weight gradients whose channels or filters are no multiple of 8;
  /// for those there is one in TF32.
  void expect_plans(const Net& net, const Products& precision) const {
    for (Question question : questions(net, precision)) {
      auto& kind = question.kind;
      const bool in_eights = question.layout.image.sizes[1] % 8 == 0 && question.layout.output.sizes[1] % 8 == 0;
      if (kind.direction == Direction::weight_gradient && is_low_precision(precision.dtype) && !in_eights) {
        EXPECT_FALSE(plan(question)) << question.name;
        kind.types = {DType::f32, DType::f32, true};
      }
      expect_plan(question, question.name);
    }
  }

  /// There is a plan, and cuDNN's notes about it do not break our rules.
  void expect_plan(const Question& question, const std::string& what) const {
    const auto made = plan(question);
    ASSERT_TRUE(made) << what;
    const device::ProductTypes& types = question.kind.types;
    EXPECT_EQ(device::unwanted_notes(made->plan(), is_low_precision(types.factors) || types.tf32), "")
        << what << ", " << made->name();
  }

  device::CudnnTarget target_ = device::describe(GetParam());
};

std::string name_of_gpu(const testing::TestParamInfo<device::DescribedGpu>& info) {
  return fmt::format("sm_{}", info.param.architecture);
}

}  // namespace

TEST(Nvrtc, WhatIsNotBesideItHasItsMessage) {
  device::open_nvrtc_builtins();
  try {
    device::open_beside_nvrtc("libnvrtc-nothing.so.1");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    const std::string text = error.what(), begin = "expected libnvrtc-nothing.so.1 beside libnvrtc in /";
    EXPECT_EQ(text.substr(0, begin.size()), begin);
    EXPECT_TRUE(
        text.ends_with(", found: libnvrtc-nothing.so.1: cannot open shared object file: No such file or "
                       "directory; install NVRTC whole: cuDNN compiles kernels with it"))
        << text;
  }
}

INSTANTIATE_TEST_SUITE_P(On, CudnnPlans, testing::Values(device::kA100, device::kH100), name_of_gpu);

TEST_P(CudnnPlans, Fp32WithoutTensorCores) {
  for (const Net* net : {&kResNet20, &kResNet50, &kLeNet}) expect_plans(*net, {});
}

TEST_P(CudnnPlans, Tf32) {
  for (const Net* net : {&kResNet20, &kResNet50, &kLeNet}) expect_plans(*net, {DType::f32, true});
}

TEST_P(CudnnPlans, TwoBytes) {
  expect_plans(kLeNet, {DType::bf16});
  expect_plans(kResNet20, {DType::bf16});
}

// All its weight gradients are compiled, half a second each: only in the long tests (tests.cmake).
TEST_P(CudnnPlans, ResNet50InTwoBytes) {
  expect_plans(kResNet50, {DType::bf16});
  expect_plans(kResNet50, {DType::f16});
}

TEST_P(CudnnPlans, AReluBehindAConvolutionIsInItsPlan) {
  for (const Products& precision : {Products{}, {DType::f32, true}, {DType::bf16}, {DType::f16}}) {
    int asked = 0;
    for (Question question : questions(kLeNet, precision)) {
      if (!question.kind.relu) continue;
      for (const bool bias : {true, false}) {
        question.kind.bias = bias;
        expect_plan(question, fmt::format("{}, {}, bias {}", question.name, name_of(precision.dtype), bias));
        ++asked;
      }
    }
    EXPECT_EQ(asked, 4) << "two convolutions";
  }
}

// Our own kernel then computes the relu, or with a bias the whole convolution.
TEST_P(CudnnPlans, DepthwiseInBfloat16HasNeitherBiasNorRelu) {
  using Int = std::int64_t;
  const Attributes given({{"filters", Int{64}}, {"kernel", Int{3}}, {"groups", Int{64}}});
  const auto attributes = complete(Registries::built_in().ops.at("conv").attributes, given, "conv");
  const ops::ConvShape shape = ops::conv_shape(attributes, {DType::f32, {8, 28, 28, 64}});
  Question question{"depthwise", {}, ops::convolution_layout(shape)};
  for (const bool bias : {false, true}) {
    for (const bool relu : {false, true}) {
      question.kind = {Direction::output, bias, {DType::bf16, DType::bf16, true}, relu};
      EXPECT_EQ(plan(question).has_value(), !bias && !relu) << "bias " << bias << ", relu " << relu;
    }
  }
}

TEST_P(CudnnPlans, CudnnNotesTensorCores) {
  const auto rounds = plan(questions(kResNet20, {DType::f32, true}).back());
  ASSERT_TRUE(rounds);
  EXPECT_EQ(device::unwanted_notes(rounds->plan(), true), "");
  EXPECT_EQ(device::unwanted_notes(rounds->plan(), false), "CUDNN_NUMERICAL_NOTE_TENSOR_CORE") << rounds->name();
}

TEST_P(CudnnPlans, APlanIsTakenByItsName) {
  const Question question = questions(kResNet20, {}).front();
  const auto any = plan(question);
  ASSERT_TRUE(any);
  EXPECT_TRUE(any->name().starts_with("cuDNN eng")) << any->name();
  EXPECT_LE(static_cast<std::int64_t>(any->workspace_bytes()), CudnnConvolution::kMaxWorkspace);
  const auto same = plan(question, any->name());
  ASSERT_TRUE(same);
  EXPECT_EQ(same->name(), any->name());
  EXPECT_FALSE(plan(question, "own kernel"));
  try {
    (void)plan(question, "cuDNN eng999");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_STREQ(error.what(),
                 "rank 3 on node7: 'first': expected the algorithm that rank 0 chose (cuDNN eng999), found that the "
                 "library does not propose it here; use one kind of GPU and one version of the libraries, or set "
                 "exact: preferred");
  }
}

TEST_P(CudnnPlans, LayersOfTheSameSizesShareAPlan) {
  device::CudnnPlans made;
  target_.made = &made;
  const auto all = questions(kLeNet, {});
  ASSERT_GT(all.size(), 2U);
  EXPECT_EQ(plan(all[0])->name(), plan(all[0])->name());
  EXPECT_EQ(made.size(), 1U);
  (void)plan(all[1]);
  EXPECT_EQ(made.size(), 2U);
  Question low = all[0];
  low.kind.types = {DType::bf16, DType::bf16, false};
  (void)plan(low);
  EXPECT_EQ(made.size(), 3U);
}

// On whichever threads they are used.
TEST_P(CudnnPlans, TheStreamsOfAGpuShareItsPlans) {
  constexpr int kStreams = 4;
  device::CudnnPlans made;
  const Question question = questions(kResNet20, {DType::bf16}).back();
  const std::string unknown = "operations that cuDNN has no plan for";
  std::atomic<int> described = 0;
  std::array<std::string, kStreams> names;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kStreams; ++i) {
      threads.emplace_back([&, i] {
        device::CudnnTarget target = target_;
        target.made = &made;
        const auto mine = CudnnConvolution::make(target, kPlace, question.kind, question.layout, {"first", ""});
        names.at(static_cast<std::size_t>(i)) = mine ? mine->name() : "none";
        EXPECT_FALSE(device::CudnnPlan::make({target, kPlace, {"first", ""}, unknown, false, 0},
                                             [&](device::CudnnPlan::Graph& /*stays empty*/) { ++described; }));
      });
    }
  }
  EXPECT_TRUE(names[0].starts_with("cuDNN eng")) << names[0];
  for (const std::string& name : names) EXPECT_EQ(name, names[0]);
  EXPECT_EQ(made.size(), 2U);
  EXPECT_EQ(described, 1) << "that there is none is kept, too";
}

TEST_P(CudnnPlans, AttentionInTwoBytes) {
  struct Kind {
    std::vector<TensorSpec> inputs;
    std::int64_t heads;
    bool causal;
  };
  const TensorSpec gpt2{DType::f32, {8, 1024, 3 * 768}}, odd{DType::f32, {2, 77, 3 * 96}};
  const TensorSpec q{DType::f32, {2, 40, 128}}, k{DType::f32, {2, 56, 128}};
  for (const auto& [kind, dtype] : {std::pair(Kind{{gpt2}, 12, true}, DType::bf16),
                                    {Kind{{odd}, 4, true}, DType::f16},
                                    {Kind{{q, k, k}, 4, false}, DType::bf16}}) {
    const ops::AttentionSizes sizes(Attributes({{"heads", kind.heads}, {"causal", kind.causal}}), kind.inputs);
    const auto layout = ops::attention_layout(sizes, dtype);
    const auto make = [&](CudnnAttention::Direction direction, bool with_log_sums) {
      return CudnnAttention::make(target_, kPlace, direction, layout, with_log_sums, {"first", ""});
    };
    const auto alone = make(CudnnAttention::Direction::output, false);
    const auto output = make(CudnnAttention::Direction::output, true);
    const auto gradients = make(CudnnAttention::Direction::gradients, true);
    for (const auto* made : {&alone, &output, &gradients}) {
      ASSERT_TRUE(*made);
      EXPECT_EQ(device::unwanted_notes((*made)->plan(), true), "") << (*made)->name();
    }
    EXPECT_LT(gradients->workspace_bytes(), std::size_t{202} << 20);  // of GPT-2's
  }
}

// So fp32 and tf32 use our own kernel.
TEST_P(CudnnPlans, NoGradientsOfAttentionInFp32) {
  const std::vector<TensorSpec> inputs = {{DType::f32, {8, 1024, 3 * 768}}};
  const ops::AttentionSizes sizes(Attributes({{"heads", std::int64_t{12}}, {"causal", true}}), inputs);
  const auto layout = ops::attention_layout(sizes, DType::f32);
  EXPECT_FALSE(
      CudnnAttention::make(target_, kPlace, CudnnAttention::Direction::gradients, layout, true, {"first", ""}));
}

}  // namespace lockstep
