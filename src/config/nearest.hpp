// "Did you mean": the known word nearest to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::config {

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
[[nodiscard]] int edit_distance(std::string_view a, std::string_view b);

/// The nearest of `known`; empty where none is near (more than a third of the letters differ).
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& known);

/// "; did you mean 'momentum'?" or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

/// "one of a, b, c"; "'a'" where there is only one.
[[nodiscard]] std::string one_of(const std::vector<std::string>& words);

/// "a, b or c"
[[nodiscard]] std::string or_list(const std::vector<std::string>& words);

}  // namespace lockstep::config
