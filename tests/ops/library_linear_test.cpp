// linear, linear_gelu and gelu_linear by a library that is simulated on the CPU: whatever it proposes, the bits are
// those of our own kernels. All numbers are small integers, so that sums are exact in any order.
#include "ops/linear/library_linear.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "ops/low_precision_problem.hpp"
#include "ops/played_product.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

namespace {

using device::Epilogue;
using device::HostGrid;
using device::ProductForm;

std::unique_ptr<Kernel> make_played(const std::string& op, const KernelRequest& request, std::int64_t part_bytes) {
  const auto products = [&](GeluAt gelu) -> std::unique_ptr<GeluProducts> {
    return std::make_unique<LibraryLinear<HostGrid, PlayedProduct>>(
        request, gelu, make_linear_products<HostGrid>(request), part_bytes);
  };
  if (op == "linear_gelu") return make_linear_gelu_layer<HostGrid>(request, products(GeluAt::output));
  if (op == "gelu_linear") return make_gelu_linear_layer<HostGrid>(request, products(GeluAt::input));
  return make_product_layer<HostGrid>(request, products(GeluAt::none));
}

void fill_integers(Tensor& tensor, std::uint64_t seed) {
  for (float& value : tensor.as<float>()) {
    value = static_cast<float>((seed = seed * 1103515245 + 12345) >> 16U & 7U) - 3;
  }
}

struct Setting {
  std::string op;
  DType type = DType::f32;  ///< of everything except the bias
  bool bias = true;
  std::int64_t in = 16, features = 24;
  bool wide_output = false;  ///< in fp32, whatever the type
  bool tf32 = false;
  std::int64_t rows = 5;
};

class LibraryLinears : public testing::Test {
 protected:
  LibraryLinears() { add_built_in(registry_); }

  /// The bias has a fraction that low-precision types cannot represent, unless it is to be rounded.
  [[nodiscard]] Problem problem(const Setting& setting, bool rounded_bias = false) const {
    OpCase one{.name = "played",
               .attributes = Attributes({{"features", setting.features}, {"bias", setting.bias}}),
               .inputs = {{DType::f32, {setting.rows, setting.in}}}};
    if (setting.op == "gelu_linear") one.inputs.push_back(one.inputs[0]);
    Problem made = make_problem(registry_.at(setting.op), one);
    std::int64_t seed = 1;
    for (auto* list : {&made.inputs, &made.parameters, &made.output_gradients}) {
      for (Tensor& tensor : *list) fill_integers(tensor, seed++);
    }
    if (setting.bias) {
      for (float& value : made.parameters[1].as<float>()) value += 1.0F / 4096;
    }
    if (setting.type == DType::f32) return made;
    if (setting.bias && rounded_bias) {
      const Tensor wide = copied(made.parameters[1]);
      round_to(setting.type, wide.as<float>().data(), made.parameters[1].as<float>().data(), wide.elements());
    }
    made.inputs = downcast_of(setting.type, made.inputs);
    made.parameters[0] = downcast_of(setting.type, made.parameters[0]);
    lower_precision(setting.type, made.input_specs);
    if (setting.wide_output) return made;
    made.output_gradients = downcast_of(setting.type, made.output_gradients);
    lower_precision(setting.type, made.signature.outputs);
    return made;
  }

  /// Uses the library, if it proposes something.
  std::unique_ptr<Kernel> played(const Setting& setting, const Problem& problem, const std::string& wanted = "") {
    return problem.make_kernel([&](KernelRequest request) {
      complete(request, setting, problem);
      const GpuKernelOptions options{&stream_, setting.tf32, wanted};
      request.gpu = &options;
      return make_played(setting.op, request, part_bytes_);
    });
  }
  static std::unique_ptr<Kernel> own(const Setting& setting, const Problem& problem) {
    return problem.make_kernel([&](KernelRequest request) {
      complete(request, setting, problem);
      return host_grid_kernels().at(setting.op)(request);
    });
  }
  static void complete(KernelRequest& request, const Setting& setting, const Problem& problem) {
    request.compute_type = setting.type;
    for (std::size_t i = 0; i < request.parameters.size(); ++i) request.parameters[i] = problem.parameters[i].spec();
  }

  void expect_own_bits(const Setting& setting) {
    const Problem given = problem(setting);
    const auto kernel = played(setting, given);
    const bool rounds_bias = kernel->algorithms().find("bias in") != std::string::npos;
    const Problem as_read = problem(setting, rounds_bias);
    KernelRun expected(as_read), found(given, {.stream = &stream_});
    const auto own_kernel = own(setting, as_read);
    SCOPED_TRACE(fmt::format("{}, {}, bias {}, {} features: {}", setting.op, name_of(setting.type), setting.bias,
                             setting.features, kernel->algorithms()));
    expected.forward(*own_kernel);
    found.forward(*kernel);
    EXPECT_TRUE(found.outputs() == expected.outputs());
    expected.backward(*own_kernel);
    found.backward(*kernel);
    EXPECT_TRUE(found.input_gradients() == expected.input_gradients());
    EXPECT_TRUE(found.parameter_gradients() == expected.parameter_gradients());
    EXPECT_EQ(found.damage(), "");
    expect_the_weights_gradient_alone(given, *kernel, found.parameter_gradients()[0]);
  }
  /// The library may also compute the bias's gradient, which is then discarded.
  void expect_the_weights_gradient_alone(const Problem& given, Kernel& kernel, const KernelRun::Bytes& weights) {
    std::vector<bool> want(given.parameters.size());
    want[0] = true;
    KernelRun run(given, {.want_parameters = want, .stream = &stream_});
    run.forward(kernel);
    run.backward(kernel);
    EXPECT_TRUE(run.parameter_gradients()[0] == weights);
    EXPECT_EQ(run.damage(), "");
  }

  void expect_own_bits_in_all_settings() {
    for (const char* op : {"linear", "linear_gelu", "gelu_linear"}) {
      for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
        for (const bool bias : {true, false}) {
          expect_own_bits({op, type, bias});
          expect_own_bits({op, type, bias, 6, 5});  // the width is not one that cuBLASLt accepts for aux
          expect_own_bits({op, type, bias, 6, 5, true});
          expect_own_bits({op, type, bias, 16, 24, false, true});
        }
      }
    }
  }

  [[nodiscard]] std::string algorithms(const Setting& setting) {
    return played(setting, problem(setting))->algorithms();
  }

  OpRegistry registry_;
  GpuStream stream_{[](const ProductForm&) { return true; }};
  std::int64_t part_bytes_ = PaddedWeight::kPartBytes;
};

bool is_plain(const ProductForm& form) {
  return form.epilogue == Epilogue::none || form.epilogue == Epilogue::bias;
}

}  // namespace

TEST_F(LibraryLinears, WithEveryEpilogue) {
  expect_own_bits_in_all_settings();
  EXPECT_EQ(algorithms({"linear_gelu", DType::f32, true, 16, 24, false, true}),
            "output: played, gelu with its input kept; input's gradient: played; weight's gradient: played, bias's "
            "gradient");
  EXPECT_EQ(algorithms({"gelu_linear", DType::bf16, false}),
            "output: played; input's gradient: played, gelu's gradient; weight's gradient: played");
  EXPECT_EQ(algorithms({"gelu_linear", DType::f32, false, 16, 24, false, true}),
            "output: played; input's gradient: played, gelu's gradient; weight's gradient: played");
  EXPECT_EQ(algorithms({"linear"}),
            "output: played; input's gradient: played; weight's gradient: played, bias's gradient");
}

// A library's gelu is not known to be exact.
TEST_F(LibraryLinears, WithAGeluOfOurOwnInFp32) {
  EXPECT_EQ(algorithms({"linear_gelu", DType::f32, false}),
            "output: played; input's gradient: played; weight's gradient: played");
  EXPECT_EQ(algorithms({"gelu_linear", DType::f32, false}),
            "output: played; input's gradient: played; weight's gradient: played");
}

TEST_F(LibraryLinears, WithNone) {
  stream_.proposes = is_plain;
  expect_own_bits_in_all_settings();
  EXPECT_EQ(algorithms({"linear_gelu"}), "output: played; input's gradient: played; weight's gradient: played");
}

TEST_F(LibraryLinears, WithABiasOfTheOutputsTypeOnly) {
  stream_.proposes = [](const ProductForm& form) {
    return !adds_bias(form.epilogue) || form.bias == form.types.result;
  };
  expect_own_bits_in_all_settings();
  EXPECT_EQ(algorithms({"linear_gelu", DType::bf16}),
            "output: played, gelu with its input kept, bias in bf16; input's gradient: played; weight's gradient: "
            "played, bias's gradient");
  EXPECT_EQ(algorithms({"linear", DType::f16}),
            "output: played, bias in f16; input's gradient: played; weight's gradient: played, bias's gradient");
}

TEST_F(LibraryLinears, WithABiasInFp32ForAnOutputInFp32Only) {
  stream_.proposes = [](const ProductForm& form) {
    return !adds_bias(form.epilogue) || (form.bias == DType::f32 && form.types.result == DType::f32);
  };
  expect_own_bits_in_all_settings();
  EXPECT_EQ(algorithms({"linear", DType::bf16}),
            "output: played, result in fp32; input's gradient: played; weight's gradient: played, bias's gradient");
}

TEST_F(LibraryLinears, WithNothingAtAll) {
  stream_.proposes = [](const ProductForm&) { return false; };
  expect_own_bits_in_all_settings();
  EXPECT_EQ(algorithms({"gelu_linear"}),
            "output: own kernel; input's gradient: own kernel; weight's gradient: own kernel");
}

// Rank 0's library may have only one of the forms that another rank's has, with the same algorithm.
TEST_F(LibraryLinears, AFormIsTakenByItsName) {
  const std::vector<std::function<bool(const ProductForm&)>> libraries = {
      is_plain,
      [](const ProductForm& form) { return form.types.result == DType::f32 && is_plain(form); },
      [](const ProductForm& form) { return !adds_bias(form.epilogue) || form.bias == form.types.result; },
      [](const ProductForm&) { return true; },
  };
  for (const char* op : {"linear", "linear_gelu", "gelu_linear"}) {
    for (const bool bias : {true, false}) {
      const Setting setting{op, DType::bf16, bias};
      for (const auto& of_rank_0 : libraries) {
        stream_.proposes = of_rank_0;
        const std::string wanted = algorithms(setting);
        stream_.proposes = libraries.back();
        EXPECT_EQ(played(setting, problem(setting), wanted)->algorithms(), wanted) << op;
      }
    }
  }
}

// The gradient of an output in fp32 is copied to rows of 8 elements.
TEST_F(LibraryLinears, GapsBetweenTheRowsOfAGradientChangeNoBits) {
  for (const char* op : {"linear", "gelu_linear"}) {
    const Setting low{op, DType::bf16, true, 6, 5, false}, wide{op, DType::bf16, true, 6, 5, true};
    const Problem of_low = problem(low), of_wide = problem(wide);
    KernelRun expected(of_low), found(of_wide, {.stream = &stream_});
    const auto own_kernel = own(low, of_low), kernel = own(wide, of_wide);
    EXPECT_GE(kernel->workspace_bytes(), own_kernel->workspace_bytes() + 5 * 8 * 2);
    expected.forward(*own_kernel);
    expected.backward(*own_kernel);
    found.forward(*kernel);
    found.backward(*kernel);
    EXPECT_TRUE(found.input_gradients() == expected.input_gradients()) << op;
    EXPECT_TRUE(found.parameter_gradients() == expected.parameter_gradients()) << op;
    EXPECT_EQ(found.damage(), "");
  }
}

// 5 outputs in rows of 8.
TEST_F(LibraryLinears, AnOutputInFp32ThatIsNoMultipleOfEightIsPadded) {
  for (const DType type : {DType::bf16, DType::f16}) {
    for (const std::int64_t rows : {1, 5, 257}) expect_own_bits({"linear", type, false, 16, 5, true, false, rows});
  }
  stream_.proposes = [](const ProductForm&) { return false; };
  expect_own_bits({"linear", DType::bf16, false, 16, 5, true});
}

// 512 rows of 32 bytes: in 4 parts of 128 rows; 514 rows have a part of 257 at least, and 509 are a prime number.
TEST_F(LibraryLinears, APaddedOutputIsMadeInPartsOfEqualSize) {
  part_bytes_ = 4096;
  for (const std::int64_t rows : {512, 514, 509})
    expect_own_bits({"linear", DType::bf16, false, 16, 5, true, false, rows});
  const auto rows_of_part = [&](std::int64_t rows) {
    const auto sizes = PaddedWeight({rows, 16, 5, 3}, DType::bf16, part_bytes_).output_sizes();
    return sizes ? sizes->rows : 0;
  };
  EXPECT_EQ(rows_of_part(512), 128);
  EXPECT_EQ(rows_of_part(514), 0);
  EXPECT_EQ(rows_of_part(509), 0);
  EXPECT_EQ(rows_of_part(127), 127);
}

TEST_F(LibraryLinears, AWidthThatIsNoMultipleOfEightLeavesGeluToUs) {
  EXPECT_EQ(algorithms({"linear_gelu", DType::bf16, true, 16, 12}),
            "output: played, result in fp32; input's gradient: played; weight's gradient: played, bias's gradient");
  EXPECT_EQ(algorithms({"gelu_linear", DType::bf16, true, 12, 16}),
            "output: played; input's gradient: played, result in fp32; weight's gradient: played, bias's gradient");
}

}  // namespace lockstep::ops
