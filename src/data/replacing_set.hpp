// Samples that turn out to be bad when they are read, after indexing: `data.bad_samples`.
//
// stop: the error says how the run can be resumed. replace: a bad sample is replaced by the next one that can be read:
// id + 1, id + 2, ..., and 0 after the last one. So the replacement depends only on the content of the set, not on
// ranks, threads, or the time of reading; a set that was cut from another (validation: {fraction}) never uses samples
// of the other part. Only BadSample is handled like this: a file that cannot be opened or read is a different problem,
// and may occur on one host only.
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
  std::string reason;  ///< includes the file's name
  std::string text() const;
};

/// What this process has replaced, each sample once. Thread-safe.
class ReplacedSamples {
 public:
  void add(ReplacedSample sample);
  /// Whether there are any that take() has not returned yet.
  bool any() const;
  /// Returns those, ordered by set and id.
  [[nodiscard]] std::vector<ReplacedSample> take();

 private:
  using Key = std::pair<std::string, std::int64_t>;
  mutable std::mutex mutex_;
  std::map<Key, ReplacedSample> fresh_;
  std::set<Key> known_;
};

/// More bad samples in a row are not an accident: Error(data).
inline constexpr std::int64_t kMaxBadInARow = 64;

/// `whole`, read with that policy. `name`: the set's, for messages.
[[nodiscard]] std::shared_ptr<const DataSet> with_bad_samples(std::shared_ptr<const DataSet> whole, BadWhenRead policy,
                                                              std::string name,
                                                              std::shared_ptr<ReplacedSamples> replaced);

}  // namespace lockstep::data
