#include "run/train/plugins.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "core/digest.hpp"
#include "core/files.hpp"
#include "core/shared_library.hpp"
#include "lockstep/error.hpp"
#include "lockstep/plugin.hpp"
#include "run/checkpoint/saved_model.hpp"
#include "run/train/catalogue.hpp"

namespace lockstep::train {

namespace {

namespace fs = std::filesystem;

constexpr const char* kMake = "make it with lockstep_add_plugin (docs/plugins.md)";

[[noreturn]] void refuse(const config::PluginPath& plugin, const std::string& message) {
  throw config::Problems({{plugin.place, message}});
}

std::string digest_of(const config::PluginPath& plugin) {
  std::error_code ignored;
  const auto contents = fs::is_regular_file(plugin.path, ignored) ? read_whole_file(plugin.path) : std::nullopt;
  if (!contents) refuse(plugin, fmt::format("expected a plugin, found none at '{}'; check the path", plugin.path));
  return sha256(*contents);
}

using Add = void(Registries&);

/// What the plugin's code is called by. It stays open until the program ends.
Add* open(const config::PluginPath& plugin) {
  std::string why;
  const auto library = SharedLibrary::open(fs::absolute(plugin.path), why);
  if (!library) refuse(plugin, fmt::format("expected a plugin that loads, found: {}; {}", why, kMake));
  auto* const id = library.find<const char*()>(kPluginBuildId);
  auto* const add = library.find<Add>(kPluginAdd);
  if (id == nullptr || add == nullptr) {
    refuse(plugin, fmt::format("expected a plugin of lockstep, found another library at '{}'; {}", plugin.path, kMake));
  }
  if (const std::string found = id(); found != plugin_build_id()) {
    refuse(plugin, fmt::format("expected a plugin of this build ({}), found one of build {} at '{}'; build it again "
                               "with this lockstep",
                               plugin_build_id(), found, plugin.path));
  }
  return add;
}

bool setting_is(std::string_view value) {
  const char* const setting = std::getenv("LOCKSTEP_PLUGINS");
  return setting != nullptr && setting == value;
}

void add(const config::PluginPath& plugin, Registries& registries) {
  if (setting_is("never")) {
    refuse(plugin,
           fmt::format("expected no plugins, since LOCKSTEP_PLUGINS is never, found '{}'; unset it if you trust "
                       "the plugin",
                       plugin.path));
  }
  const std::string digest = digest_of(plugin);
  const auto is_open = [&](const Plugin& other) { return other.sha256 == digest; };
  if (std::any_of(registries.plugins.begin(), registries.plugins.end(), is_open)) return;
  Add* const add_to = open(plugin);
  try {
    add_to(registries);
    (void)catalogue_of(registries);  // whether a job can name what there is now
  } catch (const std::exception& error) {
    refuse(plugin, fmt::format("expected a plugin that adds what it has, found one at '{}' that fails: {}", plugin.path,
                               error.what()));
  }
  registries.plugins.push_back({plugin.path, digest});
}

std::vector<config::PluginPath> plugins_of_job(const std::string& path, const std::vector<std::string>& overrides) {
  if (path.empty()) return config::plugins_of_text(config::default_job_text(), "digits.yaml", overrides);
  if (!fs::is_directory(path)) return config::plugins_of(path, overrides);
  auto plugins = checkpoint::plugins_of_saved_job(path, overrides);
  // Whoever passes on a model must not be able to run a program here by it.
  if (!plugins.empty() && !config::set_plugins(overrides) && !setting_is("always") && !setting_is("never")) {
    const std::string& plugin = plugins.front().path;
    refuse(plugins.front(), fmt::format("expected plugins that you name yourself, since this job comes out of a saved "
                                        "model, found '{}'; a plugin is a program: if you trust it, add plugins={}, or "
                                        "set LOCKSTEP_PLUGINS=always in the environment",
                                        plugin, plugin));
  }
  return plugins;
}

}  // namespace

void open_plugins(const std::vector<config::PluginPath>& plugins, Registries& registries) {
  for (const auto& plugin : plugins) add(plugin, registries);
}

Registries registries_of(const std::vector<std::string>& jobs, const std::vector<std::string>& overrides) {
  Registries registries = Registries::built_in();
  for (const auto& job : jobs) open_plugins(plugins_of_job(job, overrides), registries);
  return registries;
}

std::string plugins_text(const std::vector<Plugin>& plugins) {
  constexpr std::size_t kDigits = 16;
  std::string text;
  for (const Plugin& plugin : plugins) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", fs::path(plugin.path).filename().string(),
                        plugin.sha256.substr(0, kDigits));
  }
  return text;
}

std::string other_plugins(const std::string& where, const std::string& then, const std::string& now) {
  const auto or_none = [](const std::string& text) { return text.empty() ? "none" : text; };
  return fmt::format("{}: it was written with the plugins {}, but here they are {}", where, or_none(then),
                     or_none(now));
}

}  // namespace lockstep::train
