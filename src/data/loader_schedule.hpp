// Which shard of which step to load next: the assigned shards of each step, step after step. Not thread-safe.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::data {

struct ShardKey {
  std::uint64_t step = 0;
  int shard = 0;
  auto operator<=>(const ShardKey&) const = default;
};

class LoaderSchedule {
 public:
  LoaderSchedule(std::uint64_t first_step, std::uint64_t last_step) : step_(first_step), last_(last_step) {}

  /// From `from_step` on these shards are loaded; what was planned for later steps is planned again.
  void assign(std::uint64_t from_step, std::vector<int> shards);
  /// Somebody else loads this one.
  void take(const ShardKey& key);
  /// The next one that nobody took, without moving on.
  [[nodiscard]] std::optional<ShardKey> peek();
  /// Moves past what peek() gave.
  void pop();
  [[nodiscard]] bool wants(const ShardKey& key) const;

 private:
  struct Assignment {
    std::uint64_t from_step;
    std::vector<int> shards;
  };
  [[nodiscard]] const std::vector<int>* shards_of(std::uint64_t step) const;

  std::vector<Assignment> assignments_;  ///< by from_step
  std::vector<ShardKey> taken_;          ///< at or after the cursor
  std::uint64_t step_, last_;            ///< the cursor; steps end before last_
  std::size_t place_ = 0;
};

}  // namespace lockstep::data
