// Samples that turn out to be bad when they are read, after indexing: `data.bad_samples`.
//
// stop: the error says how the run may go on. replace: the next sample of the set that can be read takes the bad one's
// place, id + 1, id + 2, ..., after the last one 0. So which one it is depends on what is in the set alone, not on
// ranks, threads, or when the sample was read; a set that was cut from another (validation: {fraction}) is never filled
// from the other part. Only BadSample is met so: a file that cannot be opened or read is another matter, and may be so
// on one host only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/choices.hpp"
#include "lockstep/data_set.hpp"

namespace lockstep::data {

struct ReplacedSample {
  std::string set;  ///< "train"
  std::int64_t id = 0, by = 0;
  std::string name, by_name;
  std::string reason;  ///< names the file, too
  [[nodiscard]] std::string text() const;
};

/// What this process has replaced, each sample once. Any thread.
class ReplacedSamples {
 public:
  void add(ReplacedSample sample);
  /// Whether there are any that take() has not returned.
  [[nodiscard]] bool any() const;
  /// Those, by set and id.
  [[nodiscard]] std::vector<ReplacedSample> take();

 private:
  using Key = std::pair<std::string, std::int64_t>;
  mutable std::mutex mutex_;
  std::map<Key, ReplacedSample> fresh_;
  std::set<Key> known_;
};

/// So many bad samples in a row are no accident: Error(data).
inline constexpr std::int64_t kMaxBadInARow = 64;

/// `whole`, read by that policy. `name` is the set's, for messages.
[[nodiscard]] std::shared_ptr<const DataSet> with_bad_samples(std::shared_ptr<const DataSet> whole, BadWhenRead policy,
                                                              std::string name,
                                                              std::shared_ptr<ReplacedSamples> replaced);

}  // namespace lockstep::data
