// The metrics topK, such as top5: whether the target is among the K best classes. A job writes K into the name.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

namespace lockstep {

inline constexpr const char* kTopKOp = "top_k";  ///< whose attribute `k` is K

/// Of "top3" 3; 0: it is another metric. K is from 2, since of one class it is the accuracy, to 999999.
[[nodiscard]] inline std::int64_t top_k_of(std::string_view metric) {
  if (!metric.starts_with("top") || metric.size() > 9) return 0;
  const std::string_view digits = metric.substr(3);
  std::int64_t k = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), k);
  const bool is_plain = !digits.empty() && digits.front() >= '1' && digits.front() <= '9';
  return is_plain && error == std::errc() && end == digits.data() + digits.size() && k >= 2 ? k : 0;
}

}  // namespace lockstep
