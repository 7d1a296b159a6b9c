// `lockstep data pack`: writes any set of images as one indexed, checksummed file, or several of limited size
// (segments). A rank that opens it reads the index and then only the records that it needs; images keep their encoding.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/data_set.hpp"

namespace lockstep::data {

struct PackOptions {
  std::int64_t segment_bytes = std::int64_t{1} << 30;  ///< a segment ends with the record that reaches this size
  std::function<void(std::int64_t done, std::int64_t all)> progress;  ///< called after each record, if set
};

/// Writes `path`, and, when segments are full, `path`.1, `path`.2 and so on; returns their paths. Files are renamed at
/// the very end, so an interrupted pack leaves none that could be taken for complete.
/// Throws Error(cannot_create) if one of them exists, Error(usage) for text, Error(infrastructure) if writing fails.
std::vector<std::string> pack(const DataSet& set, const std::string& path, const PackOptions& options = {});

}  // namespace lockstep::data
