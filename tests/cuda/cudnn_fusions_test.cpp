// Rechecks the table of docs/design/gpu.md of what cuDNN fuses with a convolution under our rules, for described GPUs.
// Most of it is not used; if a newer cuDNN fuses more, using it should be reconsidered.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/low_precision.hpp"
#include "cuda/described_gpu.hpp"
#include "cuda/numerical_notes.hpp"
#include "device/cuda/cudnn_convolution.hpp"
#include "device/cuda/cudnn_frontend.hpp"
#include "device/cuda/nvrtc.hpp"

namespace lockstep {

namespace {

namespace graphs = cudnn_frontend::graph;
using cudnn_frontend::PointwiseMode_t;
using Operand = std::shared_ptr<graphs::Tensor_attributes>;

constexpr std::int64_t kBatch = 32, kChannels = 64, kPixels = 56;  // as in ResNet-50's first stage

const device::GpuPlace kFusionPlace{"node7", 3, "GPU 1 (a card, 0000:3b:00.0)", 120, "conv 'first'"};

/// What the table leaves open: a norm in front of a product counts as available if it is with any of these.
struct Form {
  DType between = DType::f32;  ///< the results of scale and offset, before relu rounds
  DType scale = DType::f32;    ///< of scale and offset
};

std::vector<Form> forms(DType dtype) {
  if (dtype == DType::f32) return {{}};
  return {{dtype, dtype}, {dtype, DType::f32}, {DType::f32, dtype}, {DType::f32, DType::f32}};
}

/// Adds operations to a graph. Images and weights have one type, sums of products are fp32.
class Operations {
 public:
  Operations(graphs::Graph& graph, DType dtype, std::int64_t kernel, const Form& form)
      : graph_(graph), dtype_(dtype), form_(form), before_(kernel / 2) {
    device::set_cudnn_types(graph, dtype);
    weights_ = device::channels_last(kChannels, kChannels, kernel, kernel);
  }

  Operand image() { return graph_.tensor(device::cudnn_tensor(images_, ++names_)); }
  /// One number for each channel.
  Operand channels(DType dtype = DType::f32) {
    const auto layout = device::channels_last(1, kChannels, 1, 1);
    return graph_.tensor(device::cudnn_tensor(layout, ++names_).set_data_type(device::cudnn_type(dtype)));
  }

  Operand conv(const Operand& image) {
    return shaped(graph_.conv_fprop(image, weight(), window<graphs::Conv_fprop_attributes>()), images_);
  }
  Operand image_gradient() {
    return shaped(graph_.conv_dgrad(image(), weight(), window<graphs::Conv_dgrad_attributes>()), images_);
  }
  /// In fp32, which is available for two-byte factors only if cuDNN fuses what follows.
  void weight_gradient(const Operand& image) {
    const auto sums =
        shaped(graph_.conv_wgrad(this->image(), image, window<graphs::Conv_wgrad_attributes>()), weights_);
    make(is_low_precision(dtype_) ? graph_.pointwise(sums, mode(PointwiseMode_t::IDENTITY)) : sums, DType::f32);
  }
  Operand two(PointwiseMode_t what, const Operand& a, const Operand& b) { return graph_.pointwise(a, b, mode(what)); }
  Operand relu(const Operand& x) { return graph_.pointwise(x, mode(PointwiseMode_t::RELU_FWD)); }
  /// Scale, offset and relu, rounded like an image in memory.
  Operand norm() {
    const auto scaled = two(PointwiseMode_t::MUL, image(), channels(form_.scale));
    const auto moved = two(PointwiseMode_t::ADD, scaled, channels(form_.scale));
    for (const Operand& x : {scaled, moved}) x->set_data_type(device::cudnn_type(form_.between));
    const Operand made = relu(moved);
    made->set_data_type(device::cudnn_type(dtype_));
    return made;
  }
  void sums(const Operand& image) {
    for (const Operand& sum : graph_.genstats(image, {})) make(sum, DType::f32);
  }
  /// The image's gradient behind a norm and a relu, and those of the norm's scale and offset. relu's input is
  /// recomputed in exactly this order: cuDNN looks for these operations.
  void gradients_through_norm() {
    const Operand x = image(), mean = channels(), inverse = channels(), scale = channels(), offset = channels();
    Operand y = two(PointwiseMode_t::SUB, x, mean);
    y = two(PointwiseMode_t::MUL, y, inverse);
    y = two(PointwiseMode_t::MUL, y, scale);
    y = two(PointwiseMode_t::ADD, y, offset);
    const Operand gradient = two(PointwiseMode_t::RELU_BWD, image_gradient(), y);
    make(gradient);
    for (const Operand& made : graph_.dbn_weight(gradient, x, mean, inverse, scale, {})) make(made, DType::f32);
  }

  /// Makes the result an output in memory.
  void make(const Operand& result) { make(result, dtype_); }

 private:
  static graphs::Pointwise_attributes mode(PointwiseMode_t what) {
    return graphs::Pointwise_attributes().set_mode(what);
  }
  static Operand shaped(Operand made, const device::ImageLayout& layout) {
    made->set_dim(device::as_list(layout.sizes)).set_stride(device::as_list(layout.strides));
    return made;
  }
  template <class Attributes>
  [[nodiscard]] Attributes window() const {
    return Attributes().set_padding({before_, before_}).set_stride({1, 1}).set_dilation({1, 1});
  }
  Operand weight() { return graph_.tensor(device::cudnn_tensor(weights_, ++names_)); }
  void make(const Operand& result, DType dtype) {
    result->set_output(true).set_uid(++names_).set_data_type(device::cudnn_type(dtype));
  }

  graphs::Graph& graph_;
  DType dtype_;
  Form form_;
  std::int64_t before_;
  std::int64_t names_ = 0;
  device::ImageLayout images_ = device::channels_last(kBatch, kChannels, kPixels, kPixels), weights_;
};

/// A row of the table. The row of weight gradients alone is in cudnn_plans_test.cpp, which asks for those of whole
/// nets: each takes a second to compile.
struct Fusion {
  const char* name;
  std::set<DType> there;
  void (*put)(Operations& in);
};

const std::set<DType> kAll = {DType::f32, DType::bf16, DType::f16}, kLowPrecision = {DType::bf16, DType::f16};

const std::vector<Fusion> kFusions = {
    {"conv, bias", kAll,
     [](Operations& in) { in.make(in.two(PointwiseMode_t::ADD, in.conv(in.image()), in.channels())); }},
    {"conv, bias, relu", kAll,
     [](Operations& in) { in.make(in.relu(in.two(PointwiseMode_t::ADD, in.conv(in.image()), in.channels()))); }},
    {"conv, sums for the statistics of a norm",
     {DType::f16},
     [](Operations& in) {
       const Operand made = in.conv(in.image());
       in.make(made);
       in.sums(made);
     }},
    {"scale, offset, relu of a norm, then conv", kLowPrecision, [](Operations& in) { in.make(in.conv(in.norm())); }},
    {"scale, offset, relu, conv, sums for statistics",
     {DType::f16},
     [](Operations& in) {
       const Operand made = in.conv(in.norm());
       in.make(made);
       in.sums(made);
     }},
    {"the image's gradient, relu's slope", kAll,
     [](Operations& in) { in.make(in.two(PointwiseMode_t::RELU_BWD, in.image_gradient(), in.image())); }},
    {"the image's gradient, relu's slope, gradients of a norm's scale and offset",
     {DType::f16},
     [](Operations& in) { in.gradients_through_norm(); }},
    {"scale, offset, relu, weight gradient", {DType::f16}, [](Operations& in) { in.weight_gradient(in.norm()); }},
};

/// Parameters: a GPU, and a kernel size.
class CudnnFusions : public testing::TestWithParam<std::tuple<device::DescribedGpu, std::int64_t>> {
 protected:
  static void SetUpTestSuite() { device::open_nvrtc_builtins(); }

  /// By the module's rules, in any form; null: there is no plan.
  [[nodiscard]] std::shared_ptr<const device::CudnnPlan> plan(const Fusion& fusion, DType dtype) const {
    for (const Form& form : forms(dtype)) {
      auto made = device::CudnnPlan::make({target_,
                                           kFusionPlace,
                                           {"first", ""},
                                           fusion.name,
                                           is_low_precision(dtype),
                                           device::CudnnConvolution::kMaxWorkspace},
                                          [&](graphs::Graph& graph) {
                                            Operations operations(graph, dtype, kernel_, form);
                                            fusion.put(operations);
                                          });
      if (made != nullptr) return made;
    }
    return nullptr;
  }

  device::DescribedGpu gpu_ = std::get<0>(GetParam());
  std::int64_t kernel_ = std::get<1>(GetParam());
  device::CudnnTarget target_ = device::describe(gpu_);
};

std::string name_of_case(const testing::TestParamInfo<CudnnFusions::ParamType>& info) {
  const auto& [gpu, kernel] = info.param;
  return fmt::format("sm_{}_{}x{}", gpu.architecture, kernel, kernel);
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(On, CudnnFusions,
                         testing::Combine(testing::Values(device::kA100, device::kH100), testing::Values(1, 3)),
                         name_of_case);

TEST_P(CudnnFusions, AreThoseOfTheTable) {
  for (const Fusion& fusion : kFusions) {
    for (const DType dtype : kAll) {
      const auto found = plan(fusion, dtype);
      const bool expected = fusion.there.contains(dtype);
      EXPECT_EQ(found != nullptr, expected)
          << "cuDNN " << cudnnGetVersion() << (expected ? " no longer has '" : " now has '") << fusion.name << "' in "
          << name_of(dtype) << ", for kernels of " << kernel_ << " x " << kernel_ << " on an " << gpu_.name
          << (expected ? "" : ": " + found->name()) << "; see the table of fusions in docs/design/gpu.md";
      if (found != nullptr) {
        EXPECT_EQ(device::unwanted_notes(*found, is_low_precision(dtype)), "") << fusion.name << ", " << name_of(dtype);
      }
    }
  }
}

}  // namespace lockstep
