// The index notes of a job's sources on their way: out of the cache, through the readers, to the other ranks of the
// host and back into the cache.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/index_cache.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/data_set.hpp"
#include "lockstep/job.hpp"

namespace lockstep::input {

/// How a set came to its index.
struct IndexReport {
  std::string set;          ///< train, validation, test
  bool was_cached = false;  ///< nothing had to be looked at
  std::string file;         ///< where the index is kept; empty: nowhere
  std::string not_kept;     ///< why it is not
};

class SourceIndexes {
 public:
  explicit SourceIndexes(const std::string& cache_directory) : cache_(cache_directory) {}
  /// With what write() of the host's leader returned; nothing is cached. Its notes are taken for a source that is the
  /// same file or folder here: ranks of a host may have been started in different directories.
  static SourceIndexes read(const std::string& bytes);

  /// Opens the source of `set` with the notes that there are.
  [[nodiscard]] std::shared_ptr<const DataSet> open(const std::string& set, const SourceOptions& source,
                                                    const DataSetInfo* like);
  /// For further notes of that set.
  [[nodiscard]] data::IndexNotes& notes(const std::string& set) { return notes_[set]; }
  /// On one rank of each host `open` runs with the notes of the cache, then on the others with what it noted. null, or
  /// a single rank: it just runs. `open` calls open() and keep().
  void open_once_a_host(Communicator* communicator, const std::function<void()>& open);
  /// Stores what was found out anew; says of each source that has an index how it came to it.
  std::vector<IndexReport> keep();
  [[nodiscard]] std::string write() const;

  /// The sets whose digest does not cover their content.
  [[nodiscard]] std::vector<std::string> large() const;
  /// Whether this rank reads the files of `set` itself: it leads its host, or they are other files than the leader's.
  [[nodiscard]] bool reads(const std::string& set) const;
  /// data::content_digest() of a large set, noted, so that it is read once; empty where `go_on` returned false.
  [[nodiscard]] std::string content(const std::string& set, const std::function<bool(double)>& go_on);

 private:
  data::IndexCache cache_;
  std::map<std::string, data::IndexNotes> notes_;  ///< by set
  std::map<std::string, SourceOptions> sources_;
  std::map<std::string, std::string> leaders_;  ///< by set: what identity_of() says on the host's leader
  std::map<std::string, std::shared_ptr<const DataSet>> large_;  ///< by set
};

}  // namespace lockstep::input
