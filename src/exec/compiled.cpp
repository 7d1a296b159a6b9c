#include "exec/compiled.hpp"

namespace lockstep::exec {

std::vector<KernelNeeds> needs_of(const KernelSet& kernels) {
  std::vector<KernelNeeds> needs;
  for (std::int32_t node = 0; node < kernels.count(); ++node) {
    const Kernel* kernel = kernels.at(node);
    needs.push_back(kernel == nullptr ? KernelNeeds{}
                                      : KernelNeeds{kernel->workspace_bytes(), kernel->kept_bytes(),
                                                    kernel->can_recompute()});
  }
  return needs;
}

Program program_of(const Graph& graph, Mode mode, std::span<const KernelNeeds> needs, const ProgramOptions& options) {
  CompileOptions compiled{.in_place = options.in_place,
                          .recompute_blocks = options.recompute == Recompute::blocks,
                          .boundary = options.boundary};
  const auto of = [&](std::int32_t node) -> const KernelNeeds& { return needs[static_cast<std::size_t>(node)]; };
  if (options.recompute != Recompute::never) {
    compiled.can_recompute = [&](std::int32_t node) { return of(node).can_recompute; };
  }
  return compile(
      graph, mode, [&](std::int32_t node) { return of(node).workspace; }, compiled);
}

}  // namespace lockstep::exec
