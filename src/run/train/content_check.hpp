// Checks that all hosts have the same data, byte for byte, for sets that are too large to be read at the start.
//
// One rank per host reads them in the background while the run trains; before the first checkpoint, the ranks compare.
// The result is stored with the index of the source (data/index_cache.hpp), so unchanged files are read for it only
// once.
//
// Files that change while the run reads them are noticed, too: no checkpoint is written then.
#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/transport/work_together.hpp"
#include "data/input/source_indexes.hpp"
#include "run/checkpoint/manifest.hpp"
#include "run/train/run_context.hpp"

namespace lockstep::train {

class ContentCheck {
 public:
  /// Begins to read. `sources`: from prepare_data; nothing else may use them from now on. null, on all ranks: nothing
  /// to check.
  ContentCheck(const RunContext& run, std::shared_ptr<input::SourceIndexes> sources);

  /// Whether there are large sets that have not been compared yet; the same on all ranks.
  bool is_due() const { return !sets_.empty() && !compared_; }
  /// Collective: waits until everything is read, compares the ranks, and then compares the result with the
  /// `data_content` of a resumed run, or sets it if there is none: a hash of 64 hexadecimal digits. Returns false, on
  /// all ranks, if `stop` asks for an end first on any of them. Throws Error(usage) that names the rank and host that
  /// differ, Error(data) for unreadable files or if the content is not that of the resumed run.
  [[nodiscard]] bool compare(checkpoint::Progress& progress, const comm::StopPoll& stop);
  /// Collective, before each checkpoint: throws Error(data) on all ranks if a file of the data has changed on any host
  /// since it was opened.
  void require_unchanged(std::int64_t step);

 private:
  [[nodiscard]] bool is_read_on_all_ranks(std::int64_t step, const comm::StopPoll& stop);
  [[nodiscard]] std::string compare_ranks();
  void read(const std::stop_token& stop);
  [[nodiscard]] bool wait(comm::WorkProgress& progress);
  [[nodiscard]] std::vector<std::string> digests_of_host();

  RunContext run_;
  std::shared_ptr<input::SourceIndexes> sources_;
  std::vector<std::string> sets_, digests_;  ///< the large sets; their digests, empty if another rank of the host reads
                                             ///< the set
  std::atomic<double> fraction_{0};          ///< of the set that is being read
  std::future<void> read_;
  bool compared_ = false;
  std::jthread thread_;  ///< last, because it uses the members above
};

}  // namespace lockstep::train
