#include "data/sample_identities.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/words.hpp"
#include "lockstep/random.hpp"

namespace lockstep::data {

void add_identities(const DataSet& set, std::int64_t id, std::vector<std::uint64_t>& out) {
  if (const auto* known = dynamic_cast<const KnowsIdentities*>(&set)) known->add_identities(id, out);
}

std::uint64_t identity_of(std::string_view text) {
  return hash_name(text);
}

std::string shared_samples(const DataSet& set, const DataSet& train) {
  std::vector<std::uint64_t> trained, own;
  for (std::int64_t id = 0; id < train.size(); ++id) add_identities(train, id, trained);
  if (trained.empty()) return "";
  std::sort(trained.begin(), trained.end());
  std::vector<std::string> shared;
  for (std::int64_t id = 0; id < set.size(); ++id) {
    own.clear();
    add_identities(set, id, own);
    const auto is_trained = [&](std::uint64_t one) { return std::binary_search(trained.begin(), trained.end(), one); };
    if (std::none_of(own.begin(), own.end(), is_trained)) continue;
    shared.push_back(set.name(id));
  }
  // Some rows of a table, short texts, or phrases may be alike by chance, but not half of them.
  const std::string& format = set.info().format;
  const auto is_of = [&](const char* kind) { return format.starts_with(kind); };
  const bool by_chance = (is_of("table") || is_of("text") || is_of("tokens")) && std::ssize(shared) * 2 < set.size();
  if (shared.empty() || by_chance) return "";
  return fmt::format("{} of {} samples {} in the training set, too: {}", shared.size(), set.size(),
                     shared.size() == 1 ? "is" : "are", few_of(shared));
}

}  // namespace lockstep::data
