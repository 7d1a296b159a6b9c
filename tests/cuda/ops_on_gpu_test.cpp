// Every case of every op on a GPU: our own kernels have the bits that their bodies have on the CPU, over the same grid;
// what a library computes is within the case's tolerance of the CPU's kernel. Without a GPU these are skipped, and only
// the transfer of operands is tested.
//
//   LOCKSTEP_TEST_OPS      ops separated by commas: only their cases are run
//   LOCKSTEP_TEST_LIBRARY  on a GPU of tests: ops of which its libraries must have computed a case
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "cuda/cases_for_gpus.hpp"
#include "cuda/host_gpu.hpp"
#include "cuda/kernel_on_gpu.hpp"
#include "cuda/kernel_results.hpp"
#include "cuda/this_gpu.hpp"
#include "lockstep/error.hpp"
#include "ops/low_precision_problem.hpp"
#include "ops/registry.hpp"
#include "ops/relu_after.hpp"
#include "ops/reordered.hpp"

namespace lockstep::ops {

namespace {

/// The words of a variable; nothing, where it isn't set.
std::optional<std::set<std::string>> words_of(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  std::set<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) words.insert(word);
  return words;
}

constexpr double kTf32 = 5e-3;  // a few roundings to 10 bits of fraction

std::string title(const Problem& problem) {
  return problem.op->name + (problem.epilogue.empty() ? "" : " + " + problem.epilogue);
}

std::unique_ptr<Kernel> cpu_kernel(const Problem& problem) {
  return problem.make_kernel(with_epilogues_of_gpus(*problem.op));
}

/// In each row of those in float16, each time at another place, an infinity, or in every other eight rows 65504.
void put_extremes(std::vector<Tensor>& tensors) {
  for (Tensor& tensor : tensors) {
    if (tensor.dtype() != DType::f16) continue;
    const auto columns = static_cast<std::size_t>(tensor.shape().back());
    const auto values = tensor.as<std::uint16_t>();
    for (std::size_t row = 0; (row + 1) * columns <= values.size(); ++row)
      values[row * columns + row % columns] = row / 8 % 2 == 0 ? 0x7c00 : 0x7bff;
  }
}

/// Whether no library was involved.
bool is_own(const std::string& algorithms) {
  return algorithms.find("cuDNN") == std::string::npos && algorithms.find("cuBLASLt") == std::string::npos;
}

/// The kernels of this machine's GPU, each under the CPU's interface.
class RealGpu {
 public:
  /// Why there is no GPU; empty: there is one.
  std::string open() {
    const std::string why = this_.open();
    if (!why.empty()) return why;
    add_built_in(ops_);
    add_gpu_kernels(this_.module, ops_);
    stream_ = this_.gpu->make_kernel_stream();
    return "";
  }
  /// Whether it is the stand-in of tests without a GPU, with the CPU's kernels.
  [[nodiscard]] bool is_stand_in() const { return this_.name.starts_with("Stand-in"); }
  [[nodiscard]] const KernelFactory* find(const std::string& op) const {
    const auto& factories = ops_.at(op).kernels;
    const auto found = factories.find(DeviceKind::cuda);
    return found == factories.end() ? nullptr : &found->second;
  }
  /// Null if the factory makes none for this request.
  [[nodiscard]] std::unique_ptr<Kernel> make(const KernelFactory& factory, const KernelRequest& request) const {
    auto kernel = std::make_unique<KernelOnGpu>(request, factory, *this_.gpu, stream_);
    return kernel->is_there() ? std::move(kernel) : nullptr;
  }

 private:
  ThisGpu this_;
  OpRegistry ops_;
  device::Gpu::Stream stream_{};
};

class OpsOnGpu : public testing::Test {
 protected:
  OpsOnGpu() { add_built_in(cpu_); }

  /// So many cases were compared. Of some ops alone there may be none of the kind.
  void expect_more_than(int least, int compared) const { EXPECT_GT(compared, asked_ ? -1 : least); }

  /// Of each of these ops a library must have computed a case: else none of its calls was tested. Of a stand-in's
  /// libraries the test that made them says which.
  static void expect_by_libraries(const RealGpu& gpu, std::set<std::string> on_gpus,
                                  const std::map<std::string, int>& cases) {
    if (gpu.is_stand_in()) on_gpus = words_of("LOCKSTEP_TEST_LIBRARY").value_or(std::set<std::string>());
    for (const std::string& op : on_gpus)
      EXPECT_TRUE(cases.contains(op)) << op << ": no case was computed by a library";
  }

  /// visit(op's cases, case, problem) for all that have a kernel, with each epilogue of GPUs.
  template <class Visit>
  void for_cases(const Visit& visit, GpuCases which = GpuCases::all_but_timed) const {
    for (const OpCases& cases : all_cases()) {
      const OpDef& op = cpu_.at(cases.op);
      if (asked_ && !asked_->contains(cases.op)) continue;
      for (const OpCase& written : cases.cases) {
        const auto one = made_of(op, written, which);
        if (!one) continue;
        for (const std::string& epilogue : epilogues_of(op, DeviceKind::cuda)) {
          auto problem = problem_of(op, *one, which);
          if (!problem) continue;
          problem->epilogue = epilogue;
          visit(cases, *one, std::move(*problem));
        }
      }
    }
  }

  /// One case in bfloat16 or float16: what the executor passes to a kernel there (graph/precision.hpp).
  struct LowPrecisionCase {
    std::string name;
    DType type;
    Problem wide, low;
    double tolerance = 0;

    [[nodiscard]] KernelRequest request(const KernelRequest& of_low) const {
      return low_precision_request(type, low, of_low);
    }
    /// Compares with our own kernel's bits, over the grid on the CPU, or with the CPU's kernel in fp32.
    [[nodiscard]] std::string difference_to(const Results& found, bool bits) const {
      if (!bits) return difference(results_of(wide, *cpu_kernel(wide)), found, tolerance, 1e-3);
      const KernelFactory own = host_grid_kernels().at(wide.op->name);
      const auto kernel = low.make_kernel([&](const KernelRequest& plain) { return own(request(plain)); });
      return difference(results_of(low, *kernel), found, 0);
    }
  };

  template <class Visit>
  void for_low_precision_cases(const Visit& visit, GpuCases which = GpuCases::all_but_timed) const {
    const auto in_two_bytes = [&](const OpCases& /*cases*/, const OpCase& one, const Problem& wide) {
      if (wide.op->kind != OpKind::layer && wide.op->kind != OpKind::fused) return;
      for (const DType type : {DType::bf16, DType::f16}) {
        Problem rounded = make_problem(*wide.op, one);
        rounded.epilogue = wide.epilogue;
        round_all(type, rounded.inputs);
        round_all(type, rounded.output_gradients);
        if (wide.op->multiplies) round_all(type, rounded.parameters, true);
        const double rounding = type == DType::bf16 ? 1.0 / 64 : 1.0 / 512;  // a few of the type's own
        const auto add = [&](bool low_inputs, bool low_outputs) {
          Problem same = make_problem(*wide.op, one);
          same.epilogue = wide.epilogue;
          same.inputs = copied(rounded.inputs);
          same.output_gradients = copied(rounded.output_gradients);
          same.parameters = copied(rounded.parameters);
          Problem low = low_precision_problem_of(
              type, same, one, {{}, true, wide.op->multiplies, low_inputs, low_outputs, wide.epilogue});
          const char* const tensors = !low_inputs ? " of inputs in fp32" : !low_outputs ? " to outputs in fp32" : "";
          visit(LowPrecisionCase{fmt::format("{}, case {}, {}{}", title(wide), one.name, name_of(type), tensors), type,
                                 std::move(same), std::move(low), std::max(one.tolerance, rounding)});
        };
        add(true, true);
        if (!wide.op->multiplies) continue;
        add(false, true);  // as a net begins, and as it ends
        add(true, false);
      }
    };
    for_cases(in_two_bytes, which);
  }

  /// Our own kernels have the bits that their bodies have on the CPU.
  void compare_own_bits(GpuCases which, int least) const {
    RealGpu gpu;
    if (const std::string why = gpu.open(); !why.empty()) GTEST_SKIP() << why;
    const auto grids = host_grid_kernels();
    int compared = 0;
    for_cases(
        [&](const OpCases& cases, const OpCase& one, const Problem& problem) {
          if (!grids.contains(cases.op)) return;
          const auto on_gpu =
              problem.make_kernel([&](const KernelRequest& request) { return gpu.make(*gpu.find(cases.op), request); });
          if (!is_own(on_gpu->algorithms())) return;
          const auto on_cpu = problem.make_kernel(grids.at(cases.op));
          EXPECT_EQ(difference(results_of(problem, *on_cpu), results_of(problem, *on_gpu), 0), "")
              << title(problem) << ", case " << one.name;
          ++compared;
        },
        which);
    expect_more_than(least, compared);
  }

  void compare_own_bits_in_two_bytes(GpuCases which, int least) const {
    RealGpu gpu;
    if (const std::string why = gpu.open(); !why.empty()) GTEST_SKIP() << why;
    int compared = 0;
    for_low_precision_cases(
        [&](const LowPrecisionCase& one) {
          const auto on_gpu = one.low.make_kernel([&](const KernelRequest& request) {
            return gpu.make(*gpu.find(one.wide.op->name), one.request(request));
          });
          if (on_gpu == nullptr || !is_own(on_gpu->algorithms())) return;
          EXPECT_EQ(one.difference_to(results_of(one.low, *on_gpu), true), "") << one.name;
          ++compared;
        },
        which);
    expect_more_than(least, compared);
  }

  void compare_rounded_gradients(GpuCases which, int least) const {
    RealGpu gpu;
    if (const std::string why = gpu.open(); !why.empty()) GTEST_SKIP() << why;
    const auto grids = host_grid_kernels();
    int compared = 0;
    for_cases(
        [&](const OpCases& cases, const OpCase& one, const Problem& problem) {
          if (problem.op->kind != OpKind::loss || !problem.op->rounds_gradient.contains(DeviceKind::cuda)) return;
          if (!problem.trains()) return;
          const auto make = [&](const KernelFactory& of_float32) {
            return problem.make_kernel([&](KernelRequest request) {
              // As much of a gap as fits into the memory of the gradient in fp32.
              const std::int64_t classes = request.inputs[0].shape.back();
              request.rounded_gradient = {DType::bf16, std::min((8 - classes % 8) % 8, classes)};
              return of_float32(request);
            });
          };
          const auto on_cpu = make(grids.at(cases.op));
          const auto on_gpu =
              make([&](const KernelRequest& request) { return gpu.make(*gpu.find(cases.op), request); });
          EXPECT_EQ(difference(rounded_gradient(problem, *on_cpu), rounded_gradient(problem, *on_gpu), 0), "")
              << title(problem) << ", case " << one.name;
          ++compared;
        },
        which);
    expect_more_than(least, compared);
  }

  OpRegistry cpu_;
  std::optional<std::set<std::string>> asked_ = words_of("LOCKSTEP_TEST_OPS");
};

}  // namespace

TEST_F(OpsOnGpu, ComputeWhatTheyDoOnTheCpu) {
  RealGpu gpu;
  if (const std::string why = gpu.open(); !why.empty()) GTEST_SKIP() << why;
  const auto grids = host_grid_kernels();
  int compared = 0;
  std::map<std::string, int> by_libraries;  // cases, by op
  for_cases([&](const OpCases& cases, const OpCase& one, const Problem& problem) {
    const KernelFactory* const made = gpu.find(cases.op);
    ASSERT_NE(made, nullptr) << cases.op << " has no kernel for GPUs";
    const auto on_gpu = problem.make_kernel([&](const KernelRequest& request) { return gpu.make(*made, request); });
    const bool own = is_own(on_gpu->algorithms()) && grids.contains(cases.op);
    const auto on_cpu = own ? problem.make_kernel(grids.at(cases.op)) : cpu_kernel(problem);
    const Results first = results_of(problem, *on_gpu);
    EXPECT_EQ(difference(results_of(problem, *on_cpu), first, own ? 0 : one.tolerance), "")
        << title(problem) << ", case " << one.name << ": " << on_gpu->algorithms();
    EXPECT_EQ(difference(first, results_of(problem, *on_gpu), 0), "")
        << title(problem) << ", " << one.name << ", again";
    ++compared;
    if (problem.op->channels_last.contains(DeviceKind::cuda)) {
      const auto last = problem.make_kernel(
          with_channels_last([&](const KernelRequest& request) { return gpu.make(*made, request); }));
      EXPECT_EQ(difference(first, results_of(problem, *last), 0), "")
          << title(problem) << ", case " << one.name << ", channels last: " << last->algorithms();
    }
    if (own) return;
    // Another rank selects the algorithms by name.
    const auto told = problem.make_kernel([&](KernelRequest request) {
      const GpuKernelOptions options{.algorithms = on_gpu->algorithms()};
      request.gpu = &options;
      return gpu.make(*made, request);
    });
    EXPECT_EQ(difference(first, results_of(problem, *told), 0), "") << title(problem) << ", " << one.name << ", told";
    const auto rounding = problem.make_kernel([&](KernelRequest request) {
      const GpuKernelOptions options{.tf32 = true};
      request.gpu = &options;
      return gpu.make(*made, request);
    });
    Results exact = results_of(problem, *on_cpu);
    // Of a sum near 0 a rounding decides whether relu lets a gradient through.
    if (problem.epilogue == "relu") exact.resize(problem.signature.outputs.size());
    EXPECT_EQ(difference(exact, results_of(problem, *rounding), kTf32), "")
        << title(problem) << ", case " << one.name << " in tf32: " << rounding->algorithms();
    ++by_libraries[cases.op];
  });
  expect_more_than(100, compared);
  expect_by_libraries(gpu, {}, by_libraries);
}

TEST_F(OpsOnGpu, ComputeManyRows) {
  compare_own_bits(GpuCases::of_many_rows, 50);
}
TEST_F(OpsOnGpu, ComputeManyRowsInTwoBytes) {
  compare_own_bits_in_two_bytes(GpuCases::of_many_rows, 100);
}
TEST_F(OpsOnGpu, ComputeFewElementsOfTimedCases) {
  compare_own_bits(GpuCases::of_few_timed, 5);
}
TEST_F(OpsOnGpu, ComputeLevelsOfRows) {
  compare_own_bits(GpuCases::of_levels_of_rows, 2);
}
TEST_F(OpsOnGpu, ComputeLevelsOfRowsInTwoBytes) {
  compare_own_bits_in_two_bytes(GpuCases::of_levels_of_rows, 4);
}
TEST_F(OpsOnGpu, ComputeWideRows) {
  compare_own_bits(GpuCases::of_wide_rows, 50);
}
TEST_F(OpsOnGpu, ComputeWideRowsInTwoBytes) {
  compare_own_bits_in_two_bytes(GpuCases::of_wide_rows, 100);
}
TEST_F(OpsOnGpu, ComputeLongSequences) {
  compare_own_bits(GpuCases::of_long_sequences, 30);
}
TEST_F(OpsOnGpu, ComputeLongSequencesInTwoBytes) {
  compare_own_bits_in_two_bytes(GpuCases::of_long_sequences, 30);
}
TEST_F(OpsOnGpu, ComputeForInference) {
  compare_own_bits(GpuCases::for_inference, 100);
}
TEST_F(OpsOnGpu, ComputeForInferenceInTwoBytes) {
  compare_own_bits_in_two_bytes(GpuCases::for_inference, 200);
}
TEST_F(OpsOnGpu, RoundGradientsOfLosses) {
  compare_rounded_gradients(GpuCases::all_but_timed, 10);
}
TEST_F(OpsOnGpu, RoundGradientsOfLossesOfWideRows) {
  compare_rounded_gradients(GpuCases::of_wide_rows, 10);
}

// Only ops with a kernel for it: others are upcast around the fp32 kernel (tests/ops/upcast_test.cpp).
TEST_F(OpsOnGpu, ComputeWhatTheyDoOnTheCpuInTwoBytes) {
  RealGpu gpu;
  if (const std::string why = gpu.open(); !why.empty()) GTEST_SKIP() << why;
  int compared = 0;
  std::map<std::string, int> by_libraries;  // cases, by op
  const auto compare = [&](const LowPrecisionCase& one) {
    const KernelFactory* const made = gpu.find(one.wide.op->name);
    ASSERT_NE(made, nullptr) << one.name;
    const auto on_gpu =
        one.low.make_kernel([&](const KernelRequest& request) { return gpu.make(*made, one.request(request)); });
    if (on_gpu == nullptr) return;
    const bool own = is_own(on_gpu->algorithms());
    const Results first = results_of(one.low, *on_gpu);
    EXPECT_EQ(one.difference_to(first, own), "") << one.name << ": " << on_gpu->algorithms();
    EXPECT_EQ(difference(first, results_of(one.low, *on_gpu), 0), "") << one.name << ", again";
    ++compared;
    if (one.wide.op->channels_last.contains(DeviceKind::cuda)) {
      const auto with_last = with_channels_last([&](const KernelRequest& request) { return gpu.make(*made, request); });
      const auto last = one.low.make_kernel([&](const KernelRequest& plain) { return with_last(one.request(plain)); });
      EXPECT_EQ(difference(first, results_of(one.low, *last), 0), "") << one.name << ", channels last";
    }
    if (!own) ++by_libraries[one.wide.op->name];
  };
  // Without a GPU its kernels are interpreted, and products as large as in the timed cases would take minutes.
  for_low_precision_cases(compare, gpu.is_stand_in() ? GpuCases::all_but_timed : GpuCases::with_timed_products);
  expect_more_than(200, compared);
  expect_by_libraries(gpu, {"attention", "conv", "linear", "linear_gelu", "gelu_linear"}, by_libraries);
}

// As where a gradient has overflowed.
TEST_F(OpsOnGpu, MultiplyExtremes) {
  RealGpu gpu;
  if (const std::string why = gpu.open(); !why.empty()) GTEST_SKIP() << why;
  int compared = 0;
  for_low_precision_cases([&](LowPrecisionCase one) {
    if (one.type != DType::f16 || !one.wide.op->multiplies || one.low.inputs[0].shape().size() != 2) return;
    for (auto* tensors : {&one.low.inputs, &one.low.parameters, &one.low.output_gradients}) put_extremes(*tensors);
    const auto on_gpu = one.low.make_kernel(
        [&](const KernelRequest& request) { return gpu.make(*gpu.find(one.wide.op->name), one.request(request)); });
    if (on_gpu == nullptr || !is_own(on_gpu->algorithms())) return;
    EXPECT_EQ(one.difference_to(results_of(one.low, *on_gpu), true), "") << one.name;
    ++compared;
  });
  expect_more_than(10, compared);
}

// Tests the comparison itself, with our own kernels over the grid in place of the GPU.
TEST_F(OpsOnGpu, TwoBytesGoThereAndBack) {
  device::HostGpu gpu;
  const auto grids = host_grid_kernels();
  int compared = 0;
  for_low_precision_cases([&](const LowPrecisionCase& one) {
    const auto around = one.low.make_kernel([&](const KernelRequest& request) -> std::unique_ptr<Kernel> {
      auto kernel =
          std::make_unique<KernelOnGpu>(one.request(request), grids.at(one.wide.op->name), gpu, gpu.make_stream());
      return kernel->is_there() ? std::move(kernel) : nullptr;
    });
    if (around == nullptr) return;
    const Results found = results_of(one.low, *around);
    EXPECT_EQ(one.difference_to(found, true), "") << one.name;
    EXPECT_EQ(one.difference_to(found, false), "") << one.name;
    ++compared;
  });
  EXPECT_GT(compared, 200);
}

TEST_F(OpsOnGpu, TheWayThereAndBackChangesNothing) {
  device::HostGpu gpu;
  int compared = 0;
  for_cases([&](const OpCases& /*cases*/, const OpCase& one, const Problem& problem) {
    const auto direct = cpu_kernel(problem), around = problem.make_kernel([&](const KernelRequest&request) {
      return std::make_unique<KernelOnGpu>(request, with_epilogues_of_gpus(*problem.op), gpu, gpu.make_stream());
    });
    EXPECT_EQ(difference(results_of(problem, *direct), results_of(problem, *around), 0), "")
        << title(problem) << ", " << one.name;
    ++compared;
  });
  EXPECT_GT(compared, 100);
}

TEST(OpsOnGpuDifference, IsFound) {
  const auto results = [](DType type, std::span<const std::byte> bytes) {
    Results list(1);
    list[0].name = "output 0";
    list[0].spec.dtype = type;
    list[0].spec.shape.push_back(2);
    list[0].bytes.assign(bytes.begin(), bytes.end());
    return list;
  };
  const auto floats = [&](float a, float b) {
    return results(DType::f32, std::as_bytes(std::span<const float>(std::array{a, b})));
  };
  const Results expected = floats(1, 2), near = floats(1, 2.0001F);
  EXPECT_EQ(difference(expected, near, 1e-3), "");
  EXPECT_EQ(difference(expected, near, 0), "output 0 has other bits");
  EXPECT_EQ(difference(floats(0, NAN), floats(0, -NAN), 0), "");
  EXPECT_EQ(difference(floats(0, NAN), floats(-0.0F, NAN), 0), "output 0 has other bits");
  EXPECT_EQ(difference(floats(1, NAN), expected, 0), "output 0 has other bits");
  EXPECT_EQ(difference(expected, floats(1, NAN), 1e-3), "output 0, element 1: expected 2, found nan");
  const std::array<std::uint16_t, 2> halves = {0x3c00, 0x4001};  // 1 and 2.002 in float16
  const Results low = results(DType::f16, std::as_bytes(std::span(halves)));
  EXPECT_EQ(difference(expected, low, 1e-2), "");
  EXPECT_EQ(difference(expected, low, 1e-4), "output 0, element 1: expected 2, found 2.001953125");
}

}  // namespace lockstep::ops
