#include "data/replacing_set.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "data/sample_identities.hpp"

namespace lockstep::data {
namespace {

/// Forwards everything except reading to the whole set.
class PassedOn : public DataSet, public KnowsIdentities {
 public:
  PassedOn(std::shared_ptr<const DataSet> whole, std::string name) : whole_(std::move(whole)), name_(std::move(name)) {}
  const DataSetInfo& info() const override { return whole_->info(); }
  std::int64_t size() const override { return whole_->size(); }
  std::string name(std::int64_t id) const override { return whole_->name(id); }
  std::int64_t label(std::int64_t id) const override { return whole_->label(id); }
  void add_identities(std::int64_t id, std::vector<std::uint64_t>& out) const override {
    data::add_identities(*whole_, id, out);
  }
  std::uint64_t bytes_read() const override { return whole_->bytes_read(); }
  bool read_encoded(std::int64_t id, std::vector<EncodedFeature>& out) const override {
    return whole_->read_encoded(id, out);
  }
  void read(std::int64_t id, Sample& out) const override {
    read_variant(id, 0, out);  // equivalent by read_variant()'s contract
  }
  void read_without_images(std::int64_t id, Sample& out) const override { whole_->read_without_images(id, out); }

 protected:
  std::shared_ptr<const DataSet> whole_;
  std::string name_;
};

class Stopping final : public PassedOn {
 public:
  using PassedOn::PassedOn;

  void read_variant(std::int64_t id, std::uint64_t variant, Sample& out) const override {
    try {
      whole_->read_variant(id, variant, out);
    } catch (const BadSample& bad) {
      throw Error(ExitCode::data,
                  fmt::format("{}: {}; repair it, or add data.bad_samples=replace: the run then goes on "
                              "from its newest checkpoint with the next sample in its place",
                              name_, bad.what()));
    }
  }
};

class Replacing final : public PassedOn {
 public:
  Replacing(std::shared_ptr<const DataSet> whole, std::string name, std::shared_ptr<ReplacedSamples> replaced)
      : PassedOn(std::move(whole), std::move(name)), replaced_(std::move(replaced)) {}

  void read_variant(std::int64_t id, std::uint64_t variant, Sample& out) const override {
    std::string reason;
    const std::int64_t tries = std::min(size(), kMaxBadInARow);
    for (std::int64_t i = 0; i < tries; ++i) {
      const std::int64_t at = (id + i) % size();
      try {
        whole_->read_variant(at, variant, out);
      } catch (const BadSample& bad) {
        if (reason.empty()) reason = bad.what();
        continue;
      }
      if (i > 0) replaced_->add({name_, id, at, whole_->name(id), whole_->name(at), reason});
      return;
    }
    throw Error(ExitCode::data,
                fmt::format("{}: sample {} and the {} after it are all bad, too many to be replaced: {}", name_, id,
                            tries - 1, reason));
  }

 private:
  std::shared_ptr<ReplacedSamples> replaced_;
};

}  // namespace

std::string ReplacedSample::text() const {
  return fmt::format("{}: sample {} is bad: {}; sample {} ({}) takes its place", set, id, reason, by, by_name);
}

void ReplacedSamples::add(ReplacedSample sample) {
  const std::lock_guard lock(mutex_);
  const Key key{sample.set, sample.id};
  if (known_.insert(key).second) fresh_.emplace(key, std::move(sample));
}

bool ReplacedSamples::any() const {
  const std::lock_guard lock(mutex_);
  return !fresh_.empty();
}

std::vector<ReplacedSample> ReplacedSamples::take() {
  const std::lock_guard lock(mutex_);
  std::vector<ReplacedSample> samples;
  for (auto& [key, sample] : fresh_) samples.push_back(std::move(sample));
  fresh_.clear();
  return samples;
}

std::shared_ptr<const DataSet> with_bad_samples(std::shared_ptr<const DataSet> whole, BadWhenRead policy,
                                                std::string name, std::shared_ptr<ReplacedSamples> replaced) {
  if (!whole) return nullptr;
  if (policy == BadWhenRead::stop) return std::make_shared<Stopping>(std::move(whole), std::move(name));
  return std::make_shared<Replacing>(std::move(whole), std::move(name), std::move(replaced));
}

}  // namespace lockstep::data
