// Plugins: the shared libraries that a job names, opened before the job is checked, since they add to what it may name.
#pragma once

#include <string>
#include <vector>

#include "config/config.hpp"
#include "lockstep/trainer.hpp"

namespace lockstep::train {

/// Opens each file and lets it add to the registries; one with the content of another that is open is passed over.
/// Throws Problems, at the place in the job, for one that is missing, no plugin, of another build, or that fails.
void open_plugins(const std::vector<config::PluginPath>& plugins, Registries& registries);

/// The built-in ones, and what the plugins of these jobs add: job or sweep files, directories of runs or checkpoints;
/// an empty path is the embedded digits job.
[[nodiscard]] Registries registries_of(const std::vector<std::string>& jobs, const std::vector<std::string>& overrides);

/// "libmine.so 0123456789abcdef, libother.so ...": what ranks compare and checkpoints keep; empty: none.
[[nodiscard]] std::string plugins_text(const std::vector<Plugin>& plugins);
/// "<where>: it was written with the plugins ..., but here they are ..."
[[nodiscard]] std::string other_plugins(const std::string& where, const std::string& then, const std::string& now);

}  // namespace lockstep::train
