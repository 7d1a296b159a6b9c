#include "step/optim/registry.hpp"

#include <optimizer_list.hpp>

namespace lockstep::optim {

bool is_on_gpus(const std::string& optimizer) {
  bool found = false;
  for_each_optimizer([&](const char* name, const auto& make) {
    using Optimizer = decltype(make());
    found = found || ((HasFormula<Optimizer> || HasOwnKernels<Optimizer>)&&optimizer == name);
  });
  return found;
}

}  // namespace lockstep::optim
