#include "data/store/location.hpp"

#include <fmt/format.h>

#include "core/remote_path.hpp"
#include "lockstep/error.hpp"

namespace lockstep::store {

Location parse_location(const std::string& path) {
  constexpr std::size_t kScheme = 5;
  LOCKSTEP_CHECK(is_remote(path), path);
  const std::size_t slash = path.find('/', kScheme);
  Location location{path.substr(kScheme, slash - kScheme), slash == std::string::npos ? "" : path.substr(slash + 1)};
  while (location.key.ends_with('/')) location.key.pop_back();
  if (location.bucket.empty()) {
    throw Error(ExitCode::configuration, fmt::format("{}: expected s3://BUCKET/KEY, found no bucket", path));
  }
  return location;
}

}  // namespace lockstep::store
