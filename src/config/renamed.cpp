#include "config/renamed.hpp"

#include <fnmatch.h>

#include <array>
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

}  // namespace

std::string new_key(const std::string& path) {
  return name_now(path, "");
}

std::string new_value(const std::string& path, const std::string& value) {
  return value.empty() ? "" : name_now(path, value);
}

}  // namespace lockstep::config
