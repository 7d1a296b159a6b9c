// Loads the real module and prints the ops for which it has kernels. An Error that the module throws must be caught
// here by its type, although the two share no symbols.
#include <fmt/format.h>

#include <cstdio>

#include "device/gpu/cuda_module.hpp"
#include "lockstep/error.hpp"
#include "ops/registry.hpp"

int main(int argc, char** argv) {
  using namespace lockstep;
  if (argc != 2) return 64;
  const auto module = device::open_module({argv[1]});
  if (!module) {
    fmt::print("{}\n", module.problem);
    return 1;
  }
  OpRegistry registry;
  ops::add_built_in(registry);
  ops::add_gpu_kernels(module, registry);
  for (const OpDef* op : registry.all()) {
    if (op->kernels.contains(DeviceKind::cuda)) fmt::print("{}\n", op->name);
  }
  OpRegistry empty;
  try {
    ops::add_gpu_kernels(module, empty);
  } catch (const Error& error) {
    fmt::print("caught {}\n", static_cast<int>(error.code()));
    return 0;
  }
  return 1;
}
