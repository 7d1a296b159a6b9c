#include "data/loader_schedule.hpp"

#include <algorithm>

namespace lockstep::data {

void LoaderSchedule::assign(std::uint64_t from_step, std::vector<int> shards) {
  std::erase_if(assignments_, [&](const Assignment& entry) { return entry.from_step >= from_step; });
  assignments_.push_back({from_step, std::move(shards)});
  while (assignments_.size() > 1 && assignments_[1].from_step <= step_) assignments_.erase(assignments_.begin());
  if (step_ < from_step) return;
  step_ = from_step;
  place_ = 0;
}

const std::vector<int>* LoaderSchedule::shards_of(std::uint64_t step) const {
  const std::vector<int>* shards = nullptr;
  for (const Assignment& entry : assignments_) {
    if (entry.from_step <= step) shards = &entry.shards;
  }
  return shards;
}

bool LoaderSchedule::wants(const ShardKey& key) const {
  const std::vector<int>* shards = shards_of(key.step);
  return shards != nullptr && std::find(shards->begin(), shards->end(), key.shard) != shards->end();
}

void LoaderSchedule::take(const ShardKey& key) {
  if (key.step >= step_) taken_.push_back(key);
}

std::optional<ShardKey> LoaderSchedule::peek() {
  while (step_ < last_) {
    const std::vector<int>* shards = shards_of(step_);
    // Not assigned yet, or no shard from here on for ever: nothing to look for.
    if (shards == nullptr || (shards->empty() && assignments_.back().from_step <= step_)) return std::nullopt;
    for (; place_ < shards->size(); ++place_) {
      const ShardKey key{step_, (*shards)[place_]};
      if (std::find(taken_.begin(), taken_.end(), key) == taken_.end()) return key;
    }
    std::erase_if(taken_, [&](const ShardKey& key) { return key.step <= step_; });
    ++step_;
    place_ = 0;
  }
  return std::nullopt;
}

void LoaderSchedule::pop() {
  ++place_;
}

}  // namespace lockstep::data
