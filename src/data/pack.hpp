// `lockstep data pack`: any set of images as one indexed, checksummed file, or several of a size (segments). A rank
// that opens it reads the index and then only the records it needs; images are kept encoded as they were.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/data_set.hpp"

namespace lockstep::data {

struct PackOptions {
  std::int64_t segment_bytes = std::int64_t{1} << 30;  ///< a segment ends after the record that reaches this
  std::function<void(std::int64_t done, std::int64_t all)> progress;  ///< after each record, where given
};

/// Writes `path`, and where segments are full `path`.1, `path`.2 and so on; returns their paths. They get their names
/// at the very end, so a pack that was broken off leaves none that could be taken for whole.
/// Throws Error(cannot_create) where one of them exists, Error(usage) for text, Error(infrastructure) where writing
/// fails.
std::vector<std::string> pack(const DataSet& set, const std::string& path, const PackOptions& options = {});

}  // namespace lockstep::data
