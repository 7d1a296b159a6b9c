// Index notes of earlier runs, one file per source, in core/cache_directory.
//
// The file's name is a hash of the reader's input (kind, paths, settings) and the program's version. Its content is
// used only if it is intact (a checksum) and every file that it was made from still has the same size and times. It is
// written under another name and renamed. Problems with it are never an error: without it, the source is indexed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/cache_directory.hpp"
#include "data/index_notes.hpp"
#include "lockstep/job.hpp"

namespace lockstep::data {

class IndexCache {
 public:
  /// With an empty directory, nothing is found or stored. Throws Error(configuration) for a LOCKSTEP_CACHE_LIMIT that
  /// is none.
  explicit IndexCache(std::string directory) : directory_(std::move(directory)), limit_(cache_limit()) {}

  /// Where the notes of this source are stored; empty: nowhere.
  std::string path_of(const SourceOptions& source) const;
  /// Nothing if they are missing, damaged or out of date.
  std::optional<IndexNotes> find(const SourceOptions& source) const;
  /// Returns why storing failed, or "".
  std::string store(const SourceOptions& source, const IndexNotes& notes) const;

 private:
  std::string directory_;
  std::uint64_t limit_;
};

}  // namespace lockstep::data
