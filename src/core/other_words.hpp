// What Keras, PyTorch and everyday speech call the things that job files and the command line name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// The word of `known` that is the same but for capitals, dashes and underscores, or that is ours for another program's
/// word: "linear" for "Dense". Empty: none.
[[nodiscard]] std::string our_word_for(std::string_view word, const std::vector<std::string>& known);

}  // namespace lockstep
