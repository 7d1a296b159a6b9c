#include "step/exec/compiled.hpp"

namespace lockstep::exec {

std::vector<KernelNeeds> needs_of(const KernelSet& kernels) {
  constexpr std::size_t kBits = 64;
  std::vector<KernelNeeds> list;
  for (std::int32_t node = 0; node < kernels.count(); ++node) {
    KernelNeeds& needs = list.emplace_back();
    const Kernel* kernel = kernels.at(node);
    if (kernel == nullptr) continue;
    needs = {kernel->workspace_bytes(), kernel->kept_bytes(), kernel->can_recompute(), kernel->adds_input_gradient(),
             kernel->adds_output_gradients()};
    for (std::size_t i = 0; i < kBits; ++i) needs.adds |= std::uint64_t{kernel->adds_gradient(i) ? 1U : 0U} << i;
  }
  return list;
}

Program program_of(const Graph& graph, Mode mode, std::span<const KernelNeeds> needs, const ProgramOptions& options) {
  CompileOptions compiled{.in_place = options.in_place,
                          .recompute_blocks = options.recompute == Recompute::blocks,
                          .boundary = options.boundary};
  const auto of = [&](std::int32_t node) -> const KernelNeeds& { return needs[node]; };
  compiled.adds_input_gradient = [&](std::int32_t node) { return of(node).adds_input_gradient; };
  compiled.adds_output_gradients = [&](std::int32_t node) { return of(node).adds_output_gradients; };
  if (options.recompute != Recompute::never) {
    compiled.can_recompute = [&](std::int32_t node) { return of(node).can_recompute; };
  }
  return compile(
      graph, mode, [&](std::int32_t node) { return of(node).workspace; }, compiled);
}

}  // namespace lockstep::exec
