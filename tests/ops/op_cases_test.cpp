// The tests that every op's cases must pass: one test per property, one parameter per case ("<op>__<case>").
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocation_counter.hpp"
#include "lockstep/error.hpp"
#include "lockstep/random.hpp"
#include "ops/finite_difference.hpp"
#include "ops/op_case_fixture.hpp"

namespace lockstep::ops {

namespace {

constexpr std::size_t kSampled = 40;  // elements of a tensor whose gradients are checked individually

std::vector<CaseOfOp> all_parameters() {
  std::vector<CaseOfOp> list;
  for (const auto& cases : all_cases()) {
    for (const auto& the_case : cases.cases) list.push_back({cases, the_case});
  }
  return list;
}

/// In any call, at any address, after other values, on any thread.
void expect_bits_that_depend_on_nothing_else(const Problem& problem, const OpCase& the_case,
                                             const KernelFactory& factory) {
  const auto kernel = problem.make_kernel(factory);
  KernelRun first(problem);
  compute(*kernel, first, problem);
  const auto expected = results(first, problem);
  const auto expect_same = [&](const KernelRun& run, const char* when) {
    const auto got = results(run, problem);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(got[i].second == expected[i].second) << expected[i].first << " has other bits " << when;
    }
  };
  OpCase of_another_micro_batch = the_case;
  of_another_micro_batch.name += ", another micro-batch";  // values are derived from the name
  const Problem another = make_problem(*problem.op, of_another_micro_batch);
  KernelRun between(another);
  compute(*kernel, between, another);
  KernelRun again(problem, {.junk = std::byte{0}});
  compute(*kernel, again, problem);
  expect_same(again, "after another micro-batch");
  for (const std::size_t shift : {1UL, 6UL}) {
    KernelRun shifted(problem, {.shift = shift});
    compute(*kernel, shifted, problem);
    expect_same(shifted, "at other addresses");
  }
  KernelRun elsewhere(problem, {.shift = 3});
  std::thread([&] {
    const auto other = problem.make_kernel(factory);
    compute(*other, elsewhere, problem);
  }).join();
  expect_same(elsewhere, "in another kernel on another thread");
  const auto forgetful = problem.make_kernel([&](KernelRequest request) {
    request.keeps_weights = false;
    return factory(request);
  });
  KernelRun packed_again(problem);
  compute(*forgetful, packed_again, problem);
  expect_same(packed_again, "where no weight is kept");
  EXPECT_EQ(forgetful->kept_bytes(), 0U);
}

void expect_only_wanted_gradients(const Problem& problem, const KernelFactory& factory) {
  const auto kernel = problem.make_kernel(factory);
  KernelRun full(problem);
  compute(*kernel, full, problem);
  const std::size_t inputs = problem.inputs.size(), parameters = problem.parameters.size();
  for (std::size_t one = 0; one < inputs + parameters; ++one) {  // one gradient alone; backward never runs for none
    if (one < inputs && !problem.wants_gradient(one)) continue;
    RunOptions options{.want_inputs = std::vector<bool>(inputs), .want_parameters = std::vector<bool>(parameters)};
    if (one < inputs) options.want_inputs[one] = true;
    if (one >= inputs) options.want_parameters[one - inputs] = true;
    KernelRun run(problem, options);
    compute(*kernel, run, problem);
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

/// Tensors that an op may pass over, as "op tensor" or "op case tensor": counts, which are sums of weights that readers
/// have checked; what only backward reads; and weights of a state that is 0 before the first step.
const std::set<std::string> kMayPassOver = {"add_losses input 1", "add_losses input 3", "gelu_linear input 1",
                                            "gru one_step parameter 1", "lstm one_step parameter 1"};

bool has_nan(const DoubleTensor& tensor) {
  return std::any_of(tensor.values.begin(), tensor.values.end(), [](double value) { return std::isnan(value); });
}

bool has_floats(const TensorSpec& spec) {
  return spec.dtype == DType::f32 && spec.elements() > 0;
}

/// Holds a tensor's values while it is full of NaNs.
class Nans {
 public:
  explicit Nans(Tensor& tensor) : values_(tensor.as<float>()), sound_(values_.begin(), values_.end()) {
    std::fill(values_.begin(), values_.end(), std::nanf(""));
  }
  ~Nans() { std::copy(sound_.begin(), sound_.end(), values_.begin()); }
  Nans(const Nans&) = delete;
  Nans& operator=(const Nans&) = delete;

 private:
  std::span<float> values_;
  std::vector<float> sound_;
};

bool output_has_nan(const KernelRun& run, const Problem& problem) {
  const auto outputs = run.outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (has_nan(to_doubles(outputs[i], problem.signature.outputs[i]))) return true;
  }
  return false;
}

/// What forward computes if one element is `value`; nothing if the op refuses it.
std::optional<std::vector<DoubleTensor>> outputs_with(Problem& problem, Tensor& tensor, std::size_t element,
                                                      float value, const KernelFactory& factory) {
  const auto values = tensor.as<float>();
  const float sound = std::exchange(values[element], value);
  const auto kernel = problem.make_kernel(factory);
  KernelRun run(problem, {.junk = std::byte{0}});
  std::optional<std::vector<DoubleTensor>> found(std::in_place);
  try {
    run.forward(*kernel);
    for (std::size_t i = 0; i < run.outputs().size(); ++i) {
      found->push_back(to_doubles(run.outputs()[i], problem.signature.outputs[i]));
    }
  } catch (const Error&) {
    found.reset();
  }
  values[element] = sound;
  return found;
}

/// A NaN among numbers, which max() and min() may prefer: it comes through wherever a large number changes the output.
void expect_one_nan_comes_through(Problem& problem, Tensor& tensor, const std::string& name,
                                  const KernelFactory& factory) {
  constexpr int kTries = 4;
  RandomStream random(hash_name(name), 0);
  for (int i = 0; i < kTries; ++i) {
    const std::size_t element = random.below(static_cast<std::uint32_t>(tensor.spec().elements()));
    const auto before = outputs_with(problem, tensor, element, tensor.as<float>()[element], factory);
    const auto matters = [&](float value) {
      const auto now = outputs_with(problem, tensor, element, value, factory);
      return now && !std::equal(now->begin(), now->end(), before->begin(),
                                [](const auto& a, const auto& b) { return a.values == b.values; });
    };
    if (!before || (!matters(1000) && !matters(-1000))) continue;
    const auto with_nan = outputs_with(problem, tensor, element, std::nanf(""), factory);
    EXPECT_TRUE(!with_nan || std::any_of(with_nan->begin(), with_nan->end(), has_nan)) << name << "[" << element << "]";
  }
}

/// What is computed of NaNs has one: the output, of those of an input or a parameter, unless the op refuses them; the
/// gradients of inputs, of those of the output's gradient.
void expect_nans_come_through(Problem& problem, const OpCase& the_case, const KernelFactory& factory) {
  for (auto* tensors : {&problem.inputs, &problem.parameters}) {
    for (std::size_t i = 0; i < tensors->size(); ++i) {
      const std::string name = fmt::format("{} {}", tensors == &problem.inputs ? "input" : "parameter", i);
      const bool may_pass_over = kMayPassOver.contains(problem.op->name + " " + name) ||
                                 kMayPassOver.contains(fmt::format("{} {} {}", problem.op->name, the_case.name, name));
      if (may_pass_over || !has_floats((*tensors)[i].spec())) continue;
      expect_one_nan_comes_through(problem, (*tensors)[i], name, factory);
      const Nans nans((*tensors)[i]);
      const auto kernel = problem.make_kernel(factory);  // a new one: others may keep what they made of a weight
      KernelRun run(problem, {.junk = std::byte{0}});
      try {
        run.forward(*kernel);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::data) << name << ": " << error.what();
        continue;
      }
      EXPECT_TRUE(output_has_nan(run, problem)) << name;
    }
  }
  if (!problem.trains() || problem.output_gradients.empty()) return;
  const Nans nans(problem.output_gradients[0]);
  const auto kernel = problem.make_kernel(factory);
  KernelRun run(problem, {.junk = std::byte{0}});
  compute(*kernel, run, problem);
  const auto gradients = run.input_gradients();
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!problem.wants_gradient(i) || !has_floats(problem.input_specs[i])) continue;
    EXPECT_TRUE(has_nan(to_doubles(gradients[i], problem.input_specs[i]))) << "gradient of input " << i;
  }
}

}  // namespace

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

TEST_P(OpCaseTest, NansComeThroughOrAreRefused) {
  if (the_case().benchmark || problem_.op->view) GTEST_SKIP() << "only timed, or no kernel";
  if (!problem_.op->differentiable || problem_.signature.outputs[0].elements() == 0) GTEST_SKIP() << "counts, or empty";
  for (const Made& made : kernels()) {
    SCOPED_TRACE(made.by);
    expect_nans_come_through(problem_, the_case(), made.factory);
  }
}

TEST_P(OpCaseTest, BitsDependOnNothingElse) {
  if (problem_.op->view) GTEST_SKIP() << "no kernel";
  for (const Made& made : kernels()) {
    SCOPED_TRACE(made.by);
    expect_bits_that_depend_on_nothing_else(problem_, the_case(), made.factory);
  }
}

TEST_P(OpCaseTest, WritesOnlyTheGradientsThatAreWanted) {
  if (!problem_.trains() || problem_.op->view) GTEST_SKIP() << "no gradient";
  for (const Made& made : kernels()) {
    SCOPED_TRACE(made.by);
    expect_only_wanted_gradients(problem_, made.factory);
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
  for (const OpDef* op : built_in_ops().all()) {
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
