// "Did you mean": the known word nearest to a mistyped one, for every message that knows the valid words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// The number of insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
[[nodiscard]] int edit_distance(std::string_view a, std::string_view b);

/// The one of `known` that is meant by another program's word (core/other_words.hpp), or the nearest one; empty if none
/// is near (more than a third of the letters differ).
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& known);

/// "; did you mean 'momentum'?" or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace lockstep
