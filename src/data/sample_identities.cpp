#include "data/sample_identities.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/random.hpp"

namespace lockstep::data {

void add_identities(const DataSet& set, std::int64_t id, std::vector<std::uint64_t>& out) {
  if (const auto* known = dynamic_cast<const KnowsIdentities*>(&set)) known->add_identities(id, out);
}

std::uint64_t identity_of(std::string_view text) {
  return hash_name(text);
}

std::string shared_samples(const DataSet& set, const DataSet& train) {
  constexpr std::int64_t kNamed = 3;
  std::vector<std::uint64_t> trained, own;
  for (std::int64_t id = 0; id < train.size(); ++id) add_identities(train, id, trained);
  if (trained.empty()) return "";
  std::sort(trained.begin(), trained.end());
  std::int64_t shared = 0;
  std::string names;
  for (std::int64_t id = 0; id < set.size(); ++id) {
    own.clear();
    add_identities(set, id, own);
    const auto is_trained = [&](std::uint64_t one) { return std::binary_search(trained.begin(), trained.end(), one); };
    if (std::none_of(own.begin(), own.end(), is_trained)) continue;
    if (shared++ < kNamed) names += (shared > 1 ? ", " : "") + set.name(id);
  }
  if (shared == 0) return "";
  return fmt::format("{} of {} samples {} in the training set, too: {}{}", shared, set.size(),
                     shared == 1 ? "is" : "are", names,
                     shared > kNamed ? fmt::format(" and {} more", shared - kNamed) : "");
}

}  // namespace lockstep::data
