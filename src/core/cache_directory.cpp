#include "core/cache_directory.hpp"

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "lockstep/error.hpp"

namespace lockstep {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string cache_directory() {
  if (const std::string own = variable("LOCKSTEP_CACHE"); !own.empty()) return own == "none" ? "" : own;
  if (const std::string cache = variable("XDG_CACHE_HOME"); cache.starts_with('/')) return cache + "/lockstep";
  const std::string home = variable("HOME");
  return home.starts_with('/') && home != "/" ? home + "/.cache/lockstep" : "";
}

std::uint64_t cache_limit() {
  const std::string text = variable("LOCKSTEP_CACHE_LIMIT");
  if (text.empty()) return 0;
  std::uint64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, text.data() + text.size());
  for (const auto& [name, shift] : {std::pair{"", 0}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}}) {
    if (failed == std::errc() && unit == name && number <= UINT64_MAX >> shift) return number << shift;
  }
  throw Error(ExitCode::configuration,
              "LOCKSTEP_CACHE_LIMIT: expected bytes, as in 20GiB or 500MiB, found '" + text + "'");
}

}  // namespace lockstep
