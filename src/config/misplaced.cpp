#include "config/misplaced.hpp"

#include <fmt/format.h>

#include "core/nearest.hpp"

namespace lockstep::config {
namespace {

/// Paths of the sections below `rule` that know `key`.
void find_homes(const Rule& rule, const std::string& path, const std::string& key, std::vector<std::string>& homes) {
  if (rule.child(key) != nullptr) homes.push_back(path);
  for (const auto& name : rule.keys()) find_homes(*rule.child(name), path + "." + name, key, homes);
}

std::string home(const Rule& rule, const std::string& path, const std::string& key) {
  std::vector<std::string> homes;
  find_homes(rule, path, key, homes);
  return homes.size() == 1 ? fmt::format("; '{}' belongs in {}", key, homes[0]) : "";
}

}  // namespace

std::string advice_for_key(const Rule& section, const Cursor& at, const std::string& key) {
  if (key == "<<") return "; write the values out, maps are not merged";
  if (auto below = home(section, at.path(), key); !below.empty()) return below;
  if (auto near = did_you_mean(key, section.keys()); !near.empty()) return near;
  return at.session().root != nullptr ? home(*at.session().root, "job", key) : "";
}

}  // namespace lockstep::config
