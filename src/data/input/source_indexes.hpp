// The index notes of a job's sources: loaded from the cache, used by the readers, sent to the other ranks of the host,
// and stored in the cache again.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/cache_directory.hpp"
#include "data/file_state.hpp"
#include "data/index_cache.hpp"
#include "data/target_range.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/data_set.hpp"
#include "lockstep/job.hpp"

namespace lockstep::input {

/// How a set got its index.
struct IndexReport {
  std::string set;          ///< train, validation, test
  bool was_cached = false;  ///< nothing had to be read
  std::string file;         ///< where the index is stored; empty: nowhere
  std::string not_kept;     ///< why it is not stored
};

class SourceIndexes {
 public:
  /// `readers` must outlive it.
  SourceIndexes(const std::string& cache_directory, const ReaderRegistry& readers)
      : cache_(cache_directory), readers_(&readers) {}
  ~SourceIndexes() { release(); }
  SourceIndexes(const SourceIndexes&) = delete;
  SourceIndexes(SourceIndexes&&) = default;
  SourceIndexes& operator=(const SourceIndexes&) = delete;
  SourceIndexes& operator=(SourceIndexes&&) = default;
  /// From the result of write() on the host's leader; nothing is cached. The leader's notes are used for a source that
  /// is the same file or folder here, since ranks of a host may have been started in different directories.
  static SourceIndexes read(const std::string& bytes, const ReaderRegistry& readers);

  /// Opens the source of `set`, using existing notes. `like`: as data::IndexOptions::like. The part of a source that
  /// has several is that of training, for validation and test that of testing, if the job names none.
  [[nodiscard]] std::shared_ptr<const DataSet> open(const std::string& set, SourceOptions source,
                                                    const DataSetInfo* like);
  /// A file that says something about samples, which is read once.
  void add_list(const std::string& path) {
    if (!path.empty()) lists_.push_back(path);
  }
  /// What the targets of an opened set range over; none where its reader doesn't say it.
  [[nodiscard]] const std::vector<data::TargetRange>& targets(const std::string& set) { return targets_[set]; }
  /// For adding notes to that set.
  [[nodiscard]] data::IndexNotes& notes(const std::string& set) { return notes_[set]; }
  /// Runs `open` on one rank of each host with the notes of the cache, then on the others with the notes of that rank.
  /// With null, or a single rank, it just runs. `open` calls open() and keep().
  void open_once_a_host(Communicator* communicator, const std::function<void()>& open);
  /// Stores new notes; reports, for each source that has an index, how it got it.
  std::vector<IndexReport> keep();
  std::string write() const;

  /// FileWatch::changed() of the files of all sets that this rank reads itself; those of a folder are compared whenever
  /// one is read. Thread-safe with content().
  std::string changed() const;

  /// By path as the job has it, a hash of each file and folder that the sets are read from (data::path_digest).
  [[nodiscard]] std::map<std::string, std::string> path_digests() const;

  /// The sets whose digest does not cover their content.
  std::vector<std::string> large() const;
  /// Whether this rank reads the files of `set` itself: it leads its host, or its files differ from the leader's.
  bool reads(const std::string& set) const;
  /// data::content_digest() of a large set; noted, so that it is computed only once. Empty if `go_on` returned false.
  [[nodiscard]] std::string content(const std::string& set, const std::function<bool(double)>& go_on);

 private:
  void release();
  /// The cache's notes of a source. While another process makes them, waits for it; if nobody does, this one has to,
  /// and others wait until keep().
  [[nodiscard]] std::optional<data::IndexNotes> cached(const SourceOptions& source);

  data::IndexCache cache_;
  const ReaderRegistry* readers_;
  std::vector<CacheLock> making_;                  ///< for each index that others wait for
  std::map<std::string, data::IndexNotes> notes_;  ///< by set
  std::map<std::string, std::vector<data::TargetRange>> targets_;
  std::map<std::string, SourceOptions> sources_;
  std::map<std::string, data::FileWatch> watched_;     ///< by set
  std::map<std::string, std::string> folder_digests_;  ///< by path
  std::vector<std::string> lists_;
  std::map<std::string, std::string> leaders_;                   ///< by set: identity_of() on the host's leader
  std::map<std::string, std::shared_ptr<const DataSet>> large_;  ///< by set
};

}  // namespace lockstep::input
