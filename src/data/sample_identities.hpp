// Which samples of two sets are the same. A set of files knows where each sample lies, and, if it is small, a hash of
// its bytes; so a validation image that was trained on is noticed without reading anything again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data_set.hpp"

namespace lockstep::data {

/// A DataSet that knows its samples.
class KnowsIdentities {
 public:
  virtual ~KnowsIdentities() = default;
  /// Appends hashes of where a sample lies and of what it holds. Samples that share one are the same.
  virtual void add_identities(std::int64_t id, std::vector<std::uint64_t>& out) const = 0;
};

/// The same of any set: nothing if it knows none.
void add_identities(const DataSet& set, std::int64_t id, std::vector<std::uint64_t>& out);

[[nodiscard]] std::uint64_t identity_of(std::string_view text);

/// "12 of 100 samples are in the training set, too: a.png, b.png, c.png and 9 more"; "" if none are known to be.
[[nodiscard]] std::string shared_samples(const DataSet& set, const DataSet& train);

}  // namespace lockstep::data
