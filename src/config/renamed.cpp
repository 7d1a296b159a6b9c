#include "config/renamed.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

namespace lockstep::config {
namespace {

struct Renamed {
  std::string_view key;
  std::string_view value;  ///< empty: the key itself was renamed
  std::string_view name;   ///< now
};

constexpr std::array kRenamed{
    Renamed{"deviation", "", "std"},
    Renamed{"stages", "", "parts"},
    Renamed{"bad_samples", "leave_out", "skip"},
    Renamed{"recompute", "false", "never"},
    Renamed{"recompute", "true", "cheap"},
};

std::string name_now(std::string_view key, std::string_view value) {
  for (const Renamed& renamed : kRenamed) {
    if (renamed.key == key && renamed.value == value) return std::string(renamed.name);
  }
  return "";
}

}  // namespace

std::string new_key(const std::string& key) {
  return name_now(key, "");
}

std::string new_value(const std::string& path, const std::string& value) {
  return value.empty() ? "" : name_now(path.substr(path.rfind('.') + 1), value);
}

Json renew(const Json& old) {
  if (!old.is_object() && !old.is_array()) return old;
  Json now = old.is_object() ? Json::object() : Json::array();
  for (const auto& [key, inner] : old.items()) {
    if (old.is_array()) {
      now.push_back(renew(inner));
      continue;
    }
    const std::string name = new_key(key);
    const std::string old_value = inner.is_string() ? inner.get<std::string>() : inner.is_boolean() ? inner.dump() : "";
    const std::string value = new_value(key, old_value);
    now[name.empty() ? key : name] = value.empty() ? renew(inner) : Json(value);
  }
  return now;
}

}  // namespace lockstep::config
