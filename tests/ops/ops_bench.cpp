// ops_bench [PATTERN] [SECONDS]: times the cases marked `benchmark`, one thread, best of several rounds.
//   ops_bench 'conv*' 0.5
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/spans.hpp"
#include "core/words.hpp"
#include "ops/op_driver.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

namespace {

template <class Function>
double best_seconds(double budget, const Function& function) {
  function();  // the first call may prepare
  double best = 1e30;
  const auto start = Clock::now();
  do {
    const auto begin = Clock::now();
    function();
    best = std::min(best, seconds_since(begin));
  } while (seconds_since(start) < budget);
  return best;
}

std::size_t moved_bytes(const Problem& problem) {
  std::size_t bytes = 0;
  for (const auto& tensor : problem.inputs) bytes += tensor.spec().bytes();
  for (const auto& tensor : problem.parameters) bytes += tensor.spec().bytes();
  for (const auto& spec : problem.signature.outputs) bytes += spec.bytes();
  for (const auto& spec : problem.signature.saved) bytes += spec.bytes();
  return bytes;
}

void time_case(const OpDef& op, const OpCase& the_case, double budget) {
  const Problem problem = make_problem(op, the_case);
  const auto kernel = problem.make_kernel();
  KernelRun run(problem, {.junk = std::byte{0}});
  const auto cost = op.cost(problem.attributes, problem.input_specs, problem.signature);
  const double bytes = static_cast<double>(moved_bytes(problem));
  const double forward = best_seconds(budget, [&] { run.forward(*kernel); });
  fmt::print("{:<14} {:<28} forward {:9.4f} ms {:8.1f} GFLOP/s {:7.1f} GB/s", op.name, the_case.name, forward * 1e3,
             cost.forward_flops / forward * 1e-9, bytes / forward * 1e-9);
  if (problem.trains()) {
    const double backward = best_seconds(budget, [&] { run.backward(*kernel); });
    fmt::print("   backward {:9.4f} ms {:8.1f} GFLOP/s", backward * 1e3, cost.backward_flops / backward * 1e-9);
  }
  fmt::print("\n");
}

void time_all(const std::string& pattern, double budget) {
  OpRegistry registry;
  add_built_in(registry);
  for (const auto& cases : all_cases()) {
    const OpDef& op = registry.at(cases.op);
    if (op.view || !matches(pattern, op.name)) continue;
    for (const auto& the_case : cases.cases) {
      if (the_case.benchmark) time_case(op, the_case, budget);
    }
  }
}

}  // namespace

}  // namespace lockstep::ops

int main(int argc, char** argv) {
  lockstep::ops::time_all(argc > 1 ? argv[1] : "*", argc > 2 ? std::atof(argv[2]) : 0.3);
  return 0;
}
