#include "data/sample_identities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/words.hpp"
#include "lockstep/random.hpp"

namespace lockstep::data {

void add_identities(const DataSet& set, std::int64_t id, std::vector<std::uint64_t>& out) {
  if (const auto* known = dynamic_cast<const KnowsIdentities*>(&set)) known->add_identities(id, out);
}

std::uint64_t identity_of(std::string_view text) {
  return hash_name(text);
}

namespace {

constexpr int kCut = 16;                       // bits of an identity that a sketch leaves out
constexpr std::int64_t kMostHashed = 200'000;  // samples of a training set

/// An identity as a sketch has it. Mixed, for the high bits of hashes of like texts are alike.
std::uint64_t sketched(std::uint64_t identity) {
  return mix(identity, 0) >> kCut;
}

/// `compared`: how many samples of the set could be told from those of the training set.
std::string shared_text(const DataSet& set, const std::vector<std::string>& shared, std::int64_t compared) {
  // Some rows of a table, short texts, or phrases may be alike by chance, but not half of them.
  const std::string& format = set.info().format;
  const auto is_of = [&](const char* kind) { return format.starts_with(kind); };
  const bool by_chance = (is_of("table") || is_of("text") || is_of("tokens")) && std::ssize(shared) * 2 < compared;
  if (shared.empty() || by_chance) return "";
  return fmt::format("{} of {} {} in the training set, too: {}", shared.size(),
                     compared == set.size() ? fmt::format("{} samples", compared)
                                            : fmt::format("the {} samples that can be compared", compared),
                     shared.size() == 1 ? "is" : "are", few_of(shared));
}

}  // namespace

std::string shared_samples(const DataSet& set, const DataSet& train) {
  std::vector<std::uint64_t> trained;
  for (std::int64_t id = 0; id < train.size(); ++id) add_identities(train, id, trained);
  std::sort(trained.begin(), trained.end());
  return shared_samples(set, trained);
}

std::string shared_samples(const DataSet& set, const std::vector<std::uint64_t>& trained) {
  if (trained.empty()) return "";
  std::vector<std::uint64_t> own;
  std::vector<std::string> shared;
  for (std::int64_t id = 0; id < set.size(); ++id) {
    own.clear();
    add_identities(set, id, own);
    const auto is_trained = [&](std::uint64_t one) { return std::binary_search(trained.begin(), trained.end(), one); };
    if (std::any_of(own.begin(), own.end(), is_trained)) shared.push_back(set.name(id));
  }
  return shared_text(set, shared, set.size());
}

IdentitySketch sketch_of(const DataSet& train, std::vector<std::uint64_t>* all) {
  const std::string& format = train.info().format;
  if (format.starts_with("tokens") || format.starts_with("text,"))
    return {};  // whose windows would all have to be read
  std::vector<std::uint64_t> found;
  const std::int64_t hashed = std::min(train.size(), kMostHashed);
  for (std::int64_t i = 0; i < hashed; ++i) add_identities(train, i * train.size() / hashed, found);
  if (all != nullptr && hashed == train.size()) {
    *all = found;
    std::sort(all->begin(), all->end());
  }
  for (auto& one : found) one = sketched(one);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  found.resize(std::min(found.size(), IdentitySketch::kMost));
  return {std::move(found)};
}

std::string shared_samples(const DataSet& set, const IdentitySketch& train) {
  const auto& trained = train.smallest;
  if (trained.empty()) return "";
  std::vector<std::string> shared;
  std::vector<std::uint64_t> own;
  std::int64_t compared = 0;
  for (std::int64_t id = 0; id < set.size(); ++id) {
    own.clear();
    add_identities(set, id, own);
    for (auto& one : own) one = sketched(one);
    const auto is_covered = [&](std::uint64_t one) { return train.is_whole() || one <= trained.back(); };
    const auto is_trained = [&](std::uint64_t one) { return std::binary_search(trained.begin(), trained.end(), one); };
    compared += std::any_of(own.begin(), own.end(), is_covered) ? 1 : 0;
    if (std::any_of(own.begin(), own.end(), is_trained)) shared.push_back(set.name(id));
  }
  return shared_text(set, shared, train.is_whole() ? set.size() : compared);
}

}  // namespace lockstep::data
