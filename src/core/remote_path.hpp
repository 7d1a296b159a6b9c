// Paths of a job that are not of this host.
#pragma once

#include <string_view>

namespace lockstep {

/// Whether a path is of an object store: s3://bucket/key.
[[nodiscard]] inline bool is_remote(std::string_view path) {
  return path.starts_with("s3://");
}

}  // namespace lockstep
