// A plugin that fails.
#include <lockstep/plugin.hpp>

#include <stdexcept>

void lockstep::add_plugin(Registries& /*registries*/) {
  throw std::runtime_error("no licence for this host");
}
