// The functions that the program calls when it opens a plugin (lockstep/plugin.hpp).
#include <lockstep/plugin.hpp>

#define LOCKSTEP_EXPORT extern "C" __attribute__((visibility("default")))

LOCKSTEP_EXPORT const char* lockstep_plugin_build_id() {
  static const std::string id = lockstep::plugin_build_id();
  return id.c_str();
}

LOCKSTEP_EXPORT void lockstep_plugin_add(lockstep::Registries& registries) {
  lockstep::add_plugin(registries);
}
