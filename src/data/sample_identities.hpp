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
/// As the other one. `trained`: the identities of all training samples, ascending.
[[nodiscard]] std::string shared_samples(const DataSet& set, const std::vector<std::uint64_t>& trained);

/// What a model keeps of its training samples, to know them again where the training set is not: of their identities,
/// cut to 48 bits, the smallest ones, ascending. These are all of a small set; of a large one a sample that is drawn in
/// the same way from any other set, which therefore has those of the samples that both share (Broder, "On the
/// resemblance and containment of documents", 1997).
struct IdentitySketch {
  static constexpr std::size_t kMost = 4096;
  std::vector<std::uint64_t> smallest;
  bool is_whole() const { return smallest.size() < kMost; }
};
/// `all` gets the identities of all samples, ascending, if these were found on the way: those of a large set were not.
[[nodiscard]] IdentitySketch sketch_of(const DataSet& train, std::vector<std::uint64_t>* all = nullptr);
/// As the other one; of a sketch that is not whole: "3 of the 25 samples that can be compared ...".
[[nodiscard]] std::string shared_samples(const DataSet& set, const IdentitySketch& train);

}  // namespace lockstep::data
