// A gradient that cross_entropy rounds for the products of the last layer: it has the bits of the float32 gradient,
// rounded, and a linear layer makes of it what it makes of that.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/low_precision.hpp"
#include "lockstep/error.hpp"
#include "lockstep/random.hpp"
#include "ops/op_driver.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

namespace {

using Int = std::int64_t;
constexpr Int kGradientRows = 5, kIn = 9;
constexpr std::byte kJunk{0xa5};

template <class T>
T* as(const AlignedBytes& bytes) {
  return reinterpret_cast<T*>(bytes.data());
}

AlignedBytes memory(std::size_t bytes) {
  AlignedBytes made(std::max<std::size_t>(bytes, 1));
  std::fill_n(made.data(), bytes, kJunk);
  return made;
}

AlignedBytes random_floats(Int n, const char* name, float scale = 1) {
  AlignedBytes made = memory(static_cast<std::size_t>(n) * sizeof(float));
  RandomStream random(hash_name(name), 0);
  for (Int i = 0; i < n; ++i) as<float>(made)[i] = scale * static_cast<float>(random.between(-1, 1));
  return made;
}

AlignedBytes rounded(const AlignedBytes& from, Int n) {
  AlignedBytes made = memory(static_cast<std::size_t>(n) * sizeof(std::uint16_t));
  downcast(DType::bf16, as<float>(from), as<std::uint16_t>(made), n);
  return made;
}

class RoundedGradients : public testing::TestWithParam<Int> {
 protected:
  RoundedGradients() { add_built_in(registry_); }
  [[nodiscard]] Int classes() const { return GetParam(); }
  [[nodiscard]] Int gap() const { return (8 - classes() % 8) % 8; }
  [[nodiscard]] RoundedGradient form() const { return {DType::bf16, gap()}; }
  [[nodiscard]] std::size_t bytes(std::size_t of_element, Int between = 0) const {
    return static_cast<std::size_t>(kGradientRows * (classes() + between)) * of_element;
  }

  /// The gradient that cross_entropy makes, as it is stored.
  [[nodiscard]] AlignedBytes gradient_of_loss(const RoundedGradient& as_stored, double smoothing,
                                              std::optional<double> focal = {}) const {
    Attributes given({{"label_smoothing", smoothing}, {"ignored_index", Int{0}}});
    if (focal) given.set("focal", *focal);
    const Attributes attributes = complete(registry_.at("cross_entropy").attributes, given, "cross_entropy");
    KernelRequest request;
    request.attributes = &attributes;
    request.inputs = {{DType::f32, {kGradientRows, classes()}}, {DType::i32, {kGradientRows}}};
    request.outputs = {{DType::f32, {kGradientRows}}, {DType::f32, {kGradientRows}}};
    request.rounded_gradient = as_stored;
    const auto kernel = host_grid_kernels().at("cross_entropy")(request);
    const AlignedBytes scores = random_floats(kGradientRows * classes(), "scores", 4),
                       labels = memory(kGradientRows * sizeof(Int)), loss = memory(kGradientRows * sizeof(float)),
                       count = memory(kGradientRows * sizeof(float)), maximum = memory(kGradientRows * sizeof(float)),
                       log_sum = memory(kGradientRows * sizeof(float)), workspace = memory(kernel->workspace_bytes());
    for (Int row = 0; row < kGradientRows; ++row)
      as<std::int32_t>(labels)[row] = static_cast<std::int32_t>(row * 7 % classes());
    const std::array<const void*, 2> inputs = {scores.data(), labels.data()};
    const std::array<void*, 2> outputs = {loss.data(), count.data()}, saved = {maximum.data(), log_sum.data()};
    kernel->forward({.inputs = inputs,
                     .parameters = {},
                     .states = {},
                     .statistics = {},
                     .outputs = outputs,
                     .saved = saved,
                     .workspace = workspace.data()});
    AlignedBytes gradient = memory(as_stored.rounds() ? bytes(sizeof(std::uint16_t), gap()) : bytes(sizeof(float)));
    const std::array<const void*, 2> kept = {maximum.data(), log_sum.data()};
    const std::array<void*, 2> gradients = {gradient.data(), nullptr};
    kernel->backward({.inputs = inputs,
                      .parameters = {},
                      .states = {},
                      .outputs = {},
                      .saved = kept,
                      .output_gradients = {},
                      .input_gradients = gradients,
                      .parameter_gradients = {},
                      .workspace = workspace.data()});
    return gradient;
  }

  /// What linear makes of a gradient of its output: those of x, of the weight and of the bias.
  [[nodiscard]] std::vector<std::vector<std::byte>> gradients_of_linear(const AlignedBytes& gradient,
                                                                        const RoundedGradient& as_stored) const {
    const Attributes attributes =
        complete(registry_.at("linear").attributes, Attributes({{"features", classes()}}), "linear");
    KernelRequest request;
    request.attributes = &attributes;
    request.inputs = {{DType::bf16, {kGradientRows, kIn}}};
    request.parameters = {{DType::bf16, {classes(), kIn}}, {DType::f32, {classes()}}};
    request.outputs = {{DType::f32, {kGradientRows, classes()}}};
    request.compute_type = DType::bf16;
    request.rounded_gradient = as_stored;
    const auto kernel = host_grid_kernels().at("linear")(request);
    const AlignedBytes x = rounded(random_floats(kGradientRows * kIn, "x"), kGradientRows * kIn),
                       weight = rounded(random_floats(classes() * kIn, "weight"), classes() * kIn),
                       bias = random_floats(classes(), "bias"), workspace = memory(kernel->workspace_bytes());
    std::vector<std::vector<std::byte>> made = {
        std::vector<std::byte>(kGradientRows * kIn * sizeof(std::uint16_t)),
        std::vector<std::byte>(static_cast<std::size_t>(classes() * kIn) * sizeof(float)),
        std::vector<std::byte>(static_cast<std::size_t>(classes()) * sizeof(float))};
    const std::array<const void*, 1> inputs = {x.data()}, output_gradients = {gradient.data()};
    const std::array<const void*, 2> parameters = {weight.data(), bias.data()};
    const std::array<void*, 1> input_gradients = {made[0].data()};
    const std::array<float*, 2> parameter_gradients = {reinterpret_cast<float*>(made[1].data()),
                                                       reinterpret_cast<float*>(made[2].data())};
    kernel->backward({.inputs = inputs,
                      .parameters = parameters,
                      .states = {},
                      .outputs = {},
                      .saved = {},
                      .output_gradients = output_gradients,
                      .input_gradients = input_gradients,
                      .parameter_gradients = parameter_gradients,
                      .workspace = workspace.data()});
    return made;
  }

  OpRegistry registry_;
};

}  // namespace

TEST_P(RoundedGradients, HasTheBitsOfTheFloat32Gradient) {
  const std::vector<std::pair<double, std::optional<double>>> losses = {{0.0, {}}, {0.1, {}}, {0.1, 2.0}};
  for (const auto& [smoothing, focal] : losses) {
    const AlignedBytes wide = gradient_of_loss({}, smoothing, focal);
    const AlignedBytes narrow = gradient_of_loss(form(), smoothing, focal);
    const AlignedBytes expected = rounded(wide, kGradientRows * classes());
    const auto of_row = static_cast<std::size_t>(classes()) * sizeof(std::uint16_t);
    std::vector<std::byte> junk(static_cast<std::size_t>(gap()) * sizeof(std::uint16_t), kJunk);
    for (std::size_t row = 0; row < kGradientRows; ++row) {
      const std::byte* const stored = narrow.data() + row * (of_row + junk.size());
      EXPECT_EQ(std::memcmp(stored, expected.data() + row * of_row, of_row), 0) << "row " << row;
      EXPECT_TRUE(std::equal(junk.begin(), junk.end(), stored + of_row)) << "the gap behind row " << row;
    }
    EXPECT_EQ(gradients_of_linear(narrow, form()), gradients_of_linear(wide, {}));
  }
}

TEST_P(RoundedGradients, OfAnotherTypeAreRefused) {
  const AlignedBytes none = memory(1);
  EXPECT_THROW((void)gradients_of_linear(none, {DType::f16, gap()}), Error);
  EXPECT_THROW((void)gradient_of_loss({DType::f16, gap()}, 0), Error);
}

INSTANTIATE_TEST_SUITE_P(Classes, RoundedGradients, testing::Values(3, 8, 65, 512, 1100));

}  // namespace lockstep::ops
