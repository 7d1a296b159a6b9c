// What every op's cases must pass. One test a property, one parameter a case ("<op>__<case>").
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include "allocation_counter.hpp"
#include "core/philox.hpp"
#include "lockstep/error.hpp"
#include "ops/finite_difference.hpp"
#include "ops/op_driver.hpp"
#include "ops/registry.hpp"
#include "ops/reordered.hpp"

namespace lockstep::ops {

namespace {

constexpr std::size_t kSampled = 40;  // elements of a tensor whose gradient is checked one by one

const OpRegistry& registry() {
  static const OpRegistry ops = [] {
    OpRegistry list;
    add_built_in(list);
    return list;
  }();
  return ops;
}

struct Parameter {
  OpCases cases;
  OpCase the_case;
};

void PrintTo(const Parameter& parameter, std::ostream* stream) {
  *stream << parameter.cases.op << " " << parameter.the_case.name;
}

std::vector<Parameter> all_parameters() {
  std::vector<Parameter> list;
  for (const auto& cases : all_cases()) {
    for (const auto& the_case : cases.cases) list.push_back({cases, the_case});
  }
  return list;
}

double largest(const std::vector<double>& values) {
  double result = 0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

void expect_close(const DoubleTensor& got, const DoubleTensor& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(to_string(got.shape), to_string(expected.shape)) << what;
  ASSERT_EQ(got.values.size(), expected.values.size()) << what;
  const double allowed = tolerance * (1 + largest(expected.values));
  for (std::size_t i = 0; i < got.values.size(); ++i) {
    const double error = std::abs(got.values[i] - expected.values[i]);
    const bool same = got.values[i] == expected.values[i];  // infinities too
    ASSERT_TRUE(same || error <= allowed) << what << ", element " << i << ": got " << got.values[i] << ", expected "
                                          << expected.values[i] << ", error " << error << " > " << allowed;
  }
}

/// Everything that a run computed, in one list of named bytes.
std::vector<std::pair<std::string, KernelRun::Bytes>> results(const KernelRun& run, const Problem& problem) {
  std::vector<std::pair<std::string, KernelRun::Bytes>> list;
  const auto add = [&](const char* what, const std::vector<KernelRun::Bytes>& tensors) {
    for (std::size_t i = 0; i < tensors.size(); ++i) list.emplace_back(fmt::format("{} {}", what, i), tensors[i]);
  };
  add("output", run.outputs());
  add("statistic", run.statistics());
  if (problem.trains()) {
    const auto gradients = run.input_gradients();
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (problem.wants_gradient(i)) list.emplace_back(fmt::format("input gradient {}", i), gradients[i]);
    }
    add("parameter gradient", run.parameter_gradients());
  }
  return list;
}

void compute(Kernel& kernel, KernelRun& run, const Problem& problem) {
  run.forward(kernel);
  if (problem.trains()) run.backward(kernel);
  EXPECT_EQ(run.damage(), "");
}

}  // namespace

class OpCaseTest : public testing::TestWithParam<Parameter> {
 protected:
  void SetUp() override {
    const OpDef* op = registry().find(GetParam().cases.op);
    ASSERT_NE(op, nullptr) << "no op '" << GetParam().cases.op << "'";
    problem_ = make_problem(*op, GetParam().the_case);
  }
  [[nodiscard]] const OpCase& the_case() const { return GetParam().the_case; }

  /// The kernels that run here: the CPU's, and the GPU's over its whole grid.
  struct Made {
    std::string by;
    KernelFactory factory;
    DeviceKind device;
  };
  [[nodiscard]] std::vector<Made> kernels() const {
    std::vector<Made> list = {{"the CPU's kernel", problem_.op->kernels.at(DeviceKind::cpu), DeviceKind::cpu}};
    const auto grids = host_grid_kernels();
    if (const auto grid = grids.find(problem_.op->name); grid != grids.end()) {
      list.push_back({"the GPU's kernel", grid->second, DeviceKind::cuda});
      if (problem_.op->channels_last.contains(DeviceKind::cuda)) {
        list.push_back({"the GPU's kernel, channels last", with_channels_last(grid->second), DeviceKind::cuda});
      }
    }
    return list;
  }
  /// In any call, at any address, after other values, on any thread.
  void expect_bits_that_depend_on_nothing_else(const KernelFactory& factory) const;
  void expect_only_wanted_gradients(const KernelFactory& factory) const;
  Problem problem_;
};

TEST_P(OpCaseTest, ForwardIsTheReference) {
  if (the_case().benchmark) GTEST_SKIP() << "only timed";
  const Objective objective(GetParam().cases, problem_);
  const ReferenceResult expected = objective.outputs();
  ASSERT_EQ(expected.outputs.size(), problem_.signature.outputs.size());
  if (problem_.op->view) {
    ASSERT_EQ(problem_.input_specs[0].bytes(), problem_.signature.outputs[0].bytes());
    expect_close({problem_.signature.outputs[0].shape, to_doubles(problem_.inputs[0]).values}, expected.outputs[0], 0,
                 "output 0");
    return;
  }
  const auto kernel = problem_.make_kernel();
  KernelRun run(problem_);
  compute(*kernel, run, problem_);
  const auto outputs = run.outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    expect_close(to_doubles(outputs[i], problem_.signature.outputs[i]), expected.outputs[i], the_case().tolerance,
                 fmt::format("output {}", i));
  }
  const auto statistics = run.statistics();
  ASSERT_EQ(expected.statistics.size(), statistics.size());
  for (std::size_t i = 0; i < statistics.size(); ++i) {
    expect_close(to_doubles(statistics[i], problem_.states[i].spec()), expected.statistics[i], the_case().tolerance,
                 fmt::format("statistic {}", i));
  }
}

TEST_P(OpCaseTest, GradientIsTheFiniteDifference) {
  if (the_case().benchmark || !problem_.trains() || problem_.op->view) GTEST_SKIP() << "no gradient to check";
  Objective objective(GetParam().cases, problem_);
  const auto kernel = problem_.make_kernel();
  KernelRun run(problem_);
  compute(*kernel, run, problem_);

  const auto check = [&](const DoubleTensor& got, const std::string& what, auto slope) {
    const std::size_t n = got.values.size();
    if (n == 0) return;
    RandomStream random(hash_name(what), 0);
    DoubleTensor sampled{{}, {}}, expected{{}, {}};
    for (std::size_t k = 0; k < std::min(n, kSampled); ++k) {
      const std::size_t element = n <= kSampled ? k : random.below(static_cast<std::uint32_t>(n));
      sampled.values.push_back(got.values[element]);
      expected.values.push_back(slope(element));
    }
    expect_close(sampled, expected, the_case().gradient_tolerance, what + ", sampled");

    std::vector<double> direction(n);
    double along = 0;
    for (std::size_t k = 0; k < n; ++k) {
      direction[k] = random.between(-1, 1);
      along += direction[k] * got.values[k];
    }
    expect_close({{}, {along}}, {{}, {slope(direction)}}, the_case().gradient_tolerance * std::sqrt(n),
                 what + ", along a random direction");
  };
  const auto input_gradients = run.input_gradients(), parameter_gradients = run.parameter_gradients();
  for (std::size_t i = 0; i < input_gradients.size(); ++i) {
    if (!problem_.wants_gradient(i)) continue;
    check(to_doubles(input_gradients[i], problem_.input_specs[i]), fmt::format("gradient of input {}", i),
          [&](const auto& where) { return objective.input_slope(i, where); });
  }
  for (std::size_t i = 0; i < parameter_gradients.size(); ++i) {
    check(to_doubles(parameter_gradients[i], problem_.parameters[i].spec()), fmt::format("gradient of parameter {}", i),
          [&](const auto& where) { return objective.parameter_slope(i, where); });
  }
}

void OpCaseTest::expect_bits_that_depend_on_nothing_else(const KernelFactory& factory) const {
  const auto kernel = problem_.make_kernel(factory);
  KernelRun first(problem_);
  compute(*kernel, first, problem_);
  const auto expected = results(first, problem_);
  const auto expect_same = [&](const KernelRun& run, const char* when) {
    const auto got = results(run, problem_);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(got[i].second == expected[i].second) << expected[i].first << " has other bits " << when;
    }
  };
  OpCase of_another_shard = the_case();
  of_another_shard.name += ", another shard";  // values are made from the name
  const Problem another = make_problem(*problem_.op, of_another_shard);
  KernelRun between(another);
  compute(*kernel, between, another);
  KernelRun again(problem_, {.junk = std::byte{0}});
  compute(*kernel, again, problem_);
  expect_same(again, "after another shard");
  for (const std::size_t shift : {1UL, 6UL}) {
    KernelRun shifted(problem_, {.shift = shift});
    compute(*kernel, shifted, problem_);
    expect_same(shifted, "at other addresses");
  }
  KernelRun elsewhere(problem_, {.shift = 3});
  std::thread([&] {
    const auto other = problem_.make_kernel(factory);
    compute(*other, elsewhere, problem_);
  }).join();
  expect_same(elsewhere, "in another kernel on another thread");
}

TEST_P(OpCaseTest, BitsDependOnNothingElse) {
  if (problem_.op->view) GTEST_SKIP() << "no kernel";
  for (const Made& made : kernels()) {
    SCOPED_TRACE(made.by);
    expect_bits_that_depend_on_nothing_else(made.factory);
  }
}

void OpCaseTest::expect_only_wanted_gradients(const KernelFactory& factory) const {
  const auto kernel = problem_.make_kernel(factory);
  KernelRun full(problem_);
  compute(*kernel, full, problem_);
  const std::size_t inputs = problem_.inputs.size(), parameters = problem_.parameters.size();
  for (std::size_t one = 0; one < inputs + parameters; ++one) {  // one gradient alone; backward never runs for none
    if (one < inputs && !problem_.wants_gradient(one)) continue;
    RunOptions options{.want_inputs = std::vector<bool>(inputs), .want_parameters = std::vector<bool>(parameters)};
    if (one < inputs) options.want_inputs[one] = true;
    if (one >= inputs) options.want_parameters[one - inputs] = true;
    KernelRun run(problem_, options);
    compute(*kernel, run, problem_);
    for (std::size_t i = 0; i < parameters; ++i) {
      const auto got = run.parameter_gradients()[i];
      if (options.want_parameters[i]) {
        EXPECT_TRUE(got == full.parameter_gradients()[i]) << "parameter " << i << " has other bits when alone";
      } else {
        EXPECT_TRUE(std::all_of(got.begin(), got.end(), [](auto byte) { return byte == std::byte{0xff}; }))
            << "the gradient of parameter " << i << " was not wanted";
      }
    }
    if (one < inputs) {
      EXPECT_TRUE(run.input_gradients()[one] == full.input_gradients()[one])
          << "input " << one << " has other bits when alone";
    }
  }
}

TEST_P(OpCaseTest, WritesOnlyTheGradientsThatAreWanted) {
  if (!problem_.trains() || problem_.op->view) GTEST_SKIP() << "no gradient";
  for (const Made& made : kernels()) {
    SCOPED_TRACE(made.by);
    expect_only_wanted_gradients(made.factory);
  }
}

TEST_P(OpCaseTest, AddsAGradientAsIfItWereAddedAfter) {
  if (!problem_.trains() || problem_.op->view) GTEST_SKIP() << "no gradient";
  const auto kernel = problem_.make_kernel();
  std::uint64_t adds = 0;
  for (std::size_t i = 0; i < problem_.parameters.size(); ++i) {
    if (kernel->adds_gradient(i)) adds |= std::uint64_t{1} << i;
  }
  if (adds == 0) GTEST_SKIP() << "its kernel only overwrites";
  KernelRun written(problem_), added(problem_, {.junk = std::byte{0x3F}, .add_to = adds});
  compute(*kernel, written, problem_);
  compute(*kernel, added, problem_);
  float stands_there = 0;
  std::memset(&stands_there, 0x3F, sizeof stands_there);
  for (std::size_t i = 0; i < problem_.parameters.size(); ++i) {
    const auto alone = written.parameter_gradients()[i], got = added.parameter_gradients()[i];
    const bool adding = (adds >> i & 1) != 0;
    for (std::size_t at = 0; at < alone.size(); at += sizeof(float)) {
      float gradient = 0, sum = 0;
      std::memcpy(&gradient, &alone[at], sizeof(float));
      std::memcpy(&sum, &got[at], sizeof(float));
      ASSERT_EQ(sum, adding ? stands_there + gradient : gradient) << "parameter " << i << ", byte " << at;
    }
  }
}

// Against the two kernels one after the other.
TEST_P(OpCaseTest, AnEpilogueHasTheSameBits) {
  if (problem_.op->epilogues.empty()) GTEST_SKIP() << "it has none";
  const auto each = [&](const auto& visit) {
    for (const Made& made : kernels()) {
      for (const std::string& name : epilogues_of(*problem_.op, made.device)) {
        if (!name.empty()) visit(made, name);
      }
    }
  };
  each([&](const Made& made, const std::string& name) {
    SCOPED_TRACE(made.by + " " + name);
    const auto kernel = problem_.make_kernel(made.factory);
    KernelRun first(problem_);
    first.forward(*kernel);
    Problem after =
        make_problem(registry().at(name), {.name = "", .attributes = {}, .inputs = {problem_.signature.outputs[0]}});
    const auto copy = [](const KernelRun::Bytes& from, const Tensor& to) {
      std::copy(from.begin(), from.end(), to.bytes());
    };
    copy(first.outputs()[0], after.inputs[0]);
    const auto after_kernel = after.make_kernel();
    KernelRun second(after);
    second.forward(*after_kernel);

    Problem fused = make_problem(*problem_.op, the_case());
    fused.epilogue = name;
    const auto fused_kernel = fused.make_kernel(made.factory);
    KernelRun run(fused);
    run.forward(*fused_kernel);
    EXPECT_TRUE(run.outputs() == second.outputs()) << "forward";
    EXPECT_TRUE(run.statistics() == first.statistics());
    if (!problem_.trains()) return;

    std::copy_n(problem_.output_gradients[0].bytes(), after.output_gradients[0].spec().bytes(),
                after.output_gradients[0].bytes());
    KernelRun middle(after);
    compute(*after_kernel, middle, after);
    Problem apart = make_problem(*problem_.op, the_case());
    copy(middle.input_gradients()[0], apart.output_gradients[0]);
    KernelRun expected(apart);
    compute(*kernel, expected, apart);
    run.backward(*fused_kernel);
    EXPECT_EQ(run.damage(), "");
    EXPECT_TRUE(run.input_gradients()[0] == expected.input_gradients()[0]) << "backward";
    if (problem_.op->passes_gradient) return;  // the others' is the first one's
    EXPECT_TRUE(run.input_gradients() == expected.input_gradients()) << "backward";
    EXPECT_TRUE(run.parameter_gradients() == expected.parameter_gradients()) << "backward";
  });
}

TEST_P(OpCaseTest, TakesAnEmptyBatch) {
  if (the_case().benchmark || problem_.op->view) GTEST_SKIP() << "covered by the other cases";
  const Problem empty = make_problem(*problem_.op, the_case(), true);
  for (const Made& made : kernels()) {
    SCOPED_TRACE(made.by);
    const auto kernel = empty.make_kernel(made.factory);
    KernelRun run(empty);
    compute(*kernel, run, empty);
    if (!empty.trains()) continue;
    const auto gradients = run.parameter_gradients();
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      for (const double value : to_doubles(gradients[i], empty.parameters[i].spec()).values) {
        ASSERT_EQ(value, 0) << "gradient of parameter " << i;
      }
    }
  }
}

TEST_P(OpCaseTest, TheGpuKernelMakesTheSameOfAWeightWithChannelsLast) {
  if (!problem_.op->channels_last.contains(DeviceKind::cuda)) GTEST_SKIP() << "it takes one order";
  for (const std::string& epilogue : epilogues_of(*problem_.op, DeviceKind::cuda)) {
    problem_.epilogue = epilogue;
    const KernelFactory factory = host_grid_kernels().at(problem_.op->name);
    const auto first = problem_.make_kernel(factory), last = problem_.make_kernel(with_channels_last(factory));
    KernelRun expected(problem_), found(problem_);
    compute(*first, expected, problem_);
    compute(*last, found, problem_);
    EXPECT_TRUE(results(found, problem_) == results(expected, problem_)) << epilogue;
  }
}

// Bit for bit, unless the op's cases say that the CPU adds in another order.
TEST_P(OpCaseTest, TheGpuKernelOverItsWholeGridComputesWhatTheCpusDoes) {
  const auto factories = host_grid_kernels();
  const auto factory = factories.find(problem_.op->name);
  if (factory == factories.end()) GTEST_SKIP() << "no GPU kernel of our own";
  const auto cpu = problem_.make_kernel(), gpu = problem_.make_kernel(factory->second);
  KernelRun expected(problem_), found(problem_);
  compute(*cpu, expected, problem_);
  compute(*gpu, found, problem_);
  const auto a = results(expected, problem_), b = results(found, problem_);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (GetParam().cases.cpu_order == CpuOrder::its_own) {
      const auto values = [](const KernelRun::Bytes& bytes) {
        return to_doubles(bytes, {DType::f32, {static_cast<std::int64_t>(bytes.size() / sizeof(float))}});
      };
      expect_close(values(b[i].second), values(a[i].second), the_case().tolerance, a[i].first);
    } else {
      EXPECT_TRUE(a[i] == b[i]) << a[i].first << " differs";
    }
  }
}

TEST_P(OpCaseTest, AllocatesInTheFirstCallOnly) {
  if (problem_.op->view) GTEST_SKIP() << "no kernel";
  const auto kernel = problem_.make_kernel();
  KernelRun run(problem_);
  compute(*kernel, run, problem_);
  const std::size_t before = allocations().large;
  run.forward(*kernel);
  EXPECT_EQ(allocations().large, before) << "in forward";
  if (problem_.trains()) run.backward(*kernel);
  EXPECT_EQ(allocations().large, before) << "in forward and backward";
}

INSTANTIATE_TEST_SUITE_P(Ops, OpCaseTest, testing::ValuesIn(all_parameters()), [](const auto& parameter) {
  return parameter.param.cases.op + "__" + parameter.param.the_case.name;
});

TEST(OpRegistry, EveryOpHasCases) {
  const auto list = all_cases();
  for (const OpDef* op : registry().all()) {
    const auto found = std::find_if(list.begin(), list.end(), [&](const auto& cases) { return cases.op == op->name; });
    ASSERT_NE(found, list.end()) << op->name << " has no _cases.cpp";
    EXPECT_FALSE(found->cases.empty()) << op->name;
    EXPECT_FALSE(op->doc.empty()) << op->name;
    EXPECT_TRUE(op->view || op->kernels.contains(DeviceKind::cpu)) << op->name << " has no CPU kernel";
    for (const auto& attribute : op->attributes)
      EXPECT_FALSE(attribute.doc.empty()) << op->name << "." << attribute.name;
  }
}

}  // namespace lockstep::ops
