// How generated text goes on: which token is drawn, and where it ends. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/random.hpp"

namespace lockstep::cli {

struct SamplingOptions {
  double temperature = 0.8;  ///< 0: always the likeliest token
  int top_k = 0;             ///< 0: all tokens
  double top_p = 1;          ///< of those, the fewest whose probabilities sum to this much
};

/// Indices of the `count` largest values, largest first; equal values in order of their indices.
[[nodiscard]] std::vector<std::size_t> largest(const std::vector<double>& values, int count);

/// Draws a token by its score: among the `top_k` likeliest, and of these among the smallest set of the likeliest whose
/// probabilities, after temperature and top-k, add up to `top_p` (Holtzman and others, "The curious case of neural text
/// degeneration", 2019).
[[nodiscard]] std::int32_t draw_token(std::span<const float> scores, const SamplingOptions& options,
                                      RandomStream& random);

/// Text that ends before the first of some sequences. What could be the beginning of one is held back until it is known
/// not to be.
class StopText {
 public:
  explicit StopText(std::vector<std::string> sequences) : sequences_(std::move(sequences)) {}
  /// Takes more text and returns what of all that has come can be shown now.
  [[nodiscard]] std::string add(const std::string& text);
  /// Whether a sequence has come: nothing more is shown.
  bool stopped() const { return stopped_; }
  /// What is still held back when no more text comes.
  std::string rest() const { return stopped_ ? "" : held_; }

 private:
  std::vector<std::string> sequences_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace lockstep::cli
