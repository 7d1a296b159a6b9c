// Index notes of earlier runs, a file a source: LOCKSTEP_CACHE, else $XDG_CACHE_HOME/lockstep, else
// ~/.cache/lockstep.
//
// The file's name is a hash of what the reader is given (kind, paths, settings) and of the program's version. What it
// holds is taken only if it is whole (a checksum) and every file that it was made from has the size and times that it
// had then. It is written under another name and renamed. Nothing that is wrong with it is an error: without it, the
// source is indexed.
#pragma once

#include <optional>
#include <string>

#include "data/index_notes.hpp"
#include "lockstep/job.hpp"

namespace lockstep::data {

/// By the environment; empty where that is `none`, or nothing is set.
[[nodiscard]] std::string default_cache_directory();

class IndexCache {
 public:
  /// An empty directory: nothing is found and nothing kept.
  explicit IndexCache(std::string directory) : directory_(std::move(directory)) {}

  /// Where the notes of this source are kept; empty: nowhere.
  [[nodiscard]] std::string path_of(const SourceOptions& source) const;
  /// Nothing where they are missing, damaged or out of date.
  [[nodiscard]] std::optional<IndexNotes> find(const SourceOptions& source) const;
  /// Returns why that failed, or nothing.
  [[nodiscard]] std::string store(const SourceOptions& source, const IndexNotes& notes) const;

 private:
  std::string directory_;
};

}  // namespace lockstep::data
