#include <optimizer_list.hpp>

#include "optim/registry.hpp"

namespace lockstep::optim {

void add_built_in(OptimizerRegistry& registry) {
  for_each_optimizer([&](const char* /*name*/, const auto& make) { registry.add(make()); });
}

}  // namespace lockstep::optim
