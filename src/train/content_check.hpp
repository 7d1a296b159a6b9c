// The check that all hosts have the same data to the last byte, for sets that are too large to be read at the start.
//
// One rank of each host reads them in the background while the run trains; before the first checkpoint the ranks
// compare. The result is kept with the index of the source (data/index_cache.hpp), so that files are read for it once
// as long as they do not change.
#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "comm/transport/work_together.hpp"
#include "input/source_indexes.hpp"
#include "train/run_context.hpp"

namespace lockstep::train {

class ContentCheck {
 public:
  /// Begins to read. `sources`: those of prepare_data; nothing else uses them from now on. null: there is nothing to
  /// check.
  ContentCheck(const RunContext& run, std::shared_ptr<input::SourceIndexes> sources);

  /// Whether there are large sets that compare() has not compared yet; the same on all ranks.
  [[nodiscard]] bool is_due() const { return !sets_.empty() && !compared_; }
  /// Collective: waits until all is read, and compares the ranks; then what was read with the `data_content` of a run
  /// that goes on, which is set where there is none: a hash of 64 hexadecimal digits. Throws Error(usage) that names
  /// the rank and host that differ, Error(data) for what cannot be read, and for another content than the run's.
  void compare(checkpoint::Progress& progress);

 private:
  [[nodiscard]] std::string compare_ranks(std::int64_t step);
  void read(const std::stop_token& stop);
  void wait(comm::WorkProgress& progress);
  [[nodiscard]] std::vector<std::string> digests_of_host();

  RunContext run_;
  std::shared_ptr<input::SourceIndexes> sources_;
  std::vector<std::string> sets_, digests_;  ///< the large sets; by set, empty where another rank of the host reads it
  std::atomic<double> fraction_{0};          ///< read so far of the set that is being read
  std::future<void> read_;
  bool compared_ = false;
  std::jthread thread_;  ///< last: it uses the above
};

}  // namespace lockstep::train
