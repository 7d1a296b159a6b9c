#include "config/advice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/nearest.hpp"

namespace lockstep::config {

std::string or_list(const std::vector<std::string>& words) {
  if (words.size() < 2) return words.empty() ? "" : words.front();
  return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

std::string one_of(const std::vector<std::string>& words) {
  if (words.size() == 1) return fmt::format("'{}'", words.front());
  return fmt::format("one of {}", fmt::join(words, ", "));
}

namespace {

/// The paths of the sections below `rule` that have the key `key`.
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
