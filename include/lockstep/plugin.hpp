// A plugin: a shared library with ops, losses, metrics, readers and so on of your own, for all commands of the program:
// `plugins: [./libmine.so]` in a job. CMake's lockstep_add_plugin() makes one of sources that define add_plugin()
// (docs/plugins.md).
#pragma once

#include <string>
#include <vector>

#include "lockstep/trainer.hpp"
#include "lockstep/version.hpp"

namespace lockstep {

/// Defined by the plugin: adds to what a job may name. Called once for each job that is read. What it throws ends the
/// command, with a message that names the plugin.
void add_plugin(Registries& registries);

/// What program and plugin must share, as it is where this is compiled: build_id(), the standard library, and, by the
/// sizes of its types, the macros that change their layout.
[[nodiscard]] inline std::string plugin_build_id() {
  return std::string(build_id()) + "-libstdc++" + std::to_string(_GLIBCXX_RELEASE) + "-" +
         std::to_string(sizeof(std::string)) + "." + std::to_string(sizeof(std::vector<int>));
}

/// What the program calls; lockstep_add_plugin() defines it.
inline constexpr const char* kPluginBuildId = "lockstep_plugin_build_id";  ///< const char*()
inline constexpr const char* kPluginAdd = "lockstep_plugin_add";           ///< void(Registries&)

}  // namespace lockstep
