#include "config/renamed.hpp"

#include <fnmatch.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

namespace lockstep::config {
namespace {

struct Renamed {
  const char* path;        ///< the key's path; * matches any text
  std::string_view value;  ///< empty: the key itself was renamed
  std::string_view name;   ///< the current name
};

constexpr std::array kRenamed{
    Renamed{"job.data.normalize*.deviation", "", "std"}, Renamed{"job.parallel.stages", "", "parts"},
    Renamed{"job.shards", "", "micro_batches"},          Renamed{"job.data*.bad_samples", "leave_out", "skip"},
    Renamed{"job.recompute", "false", "never"},          Renamed{"job.recompute", "true", "cheap"},
};

std::string name_now(const std::string& path, std::string_view value) {
  for (const Renamed& renamed : kRenamed) {
    if (renamed.value == value && fnmatch(renamed.path, path.c_str(), 0) == 0) return std::string(renamed.name);
  }
  return "";
}

Json renew_at(const std::string& path, const Json& old) {
  if (!old.is_object() && !old.is_array()) return old;
  Json now = old.is_object() ? Json::object() : Json::array();
  for (const auto& [key, inner] : old.items()) {
    const std::string below = path.empty() ? key : path + "." + key;
    if (old.is_array()) {
      now.push_back(renew_at(below, inner));
      continue;
    }
    const std::string name = new_key(below);
    const std::string old_value = inner.is_string() ? inner.get<std::string>() : inner.is_boolean() ? inner.dump() : "";
    const std::string value = new_value(below, old_value);
    now[name.empty() ? key : name] = value.empty() ? renew_at(below, inner) : Json(value);
  }
  return now;
}

}  // namespace

std::string new_key(const std::string& path) {
  return name_now(path, "");
}

std::string new_value(const std::string& path, const std::string& value) {
  return value.empty() ? "" : name_now(path, value);
}

Json renew(const Json& old) {
  return renew_at("", old);
}

}  // namespace lockstep::config
