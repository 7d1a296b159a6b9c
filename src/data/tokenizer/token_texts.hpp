// From tokens to text, by the decoder of a tokenizer.json: each token in turn, so that text can be printed as it comes.
//
// A token is the same text anywhere but at the beginning; bytes that are no whole character are written as they are.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/tokenizer/checked_json.hpp"

namespace lockstep::data {

/// Changes the text of one token. `first`: no text is before it.
using TokenText = std::function<void(std::string& text, bool first)>;

/// Reads decoders, one after the other.
class DecoderSteps {
 public:
  /// False if the step is not known, or not behind the others.
  [[nodiscard]] bool read(CheckedObject& step, const std::string& type);
  std::vector<TokenText> all;
  bool byte_level = false;
  bool holds_space = false;  ///< a space at the end of a token is written when more follows

 private:
  bool whole_ = false;  ///< tokens are put together already
};

}  // namespace lockstep::data
