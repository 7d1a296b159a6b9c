// The embedded data set: synthetic handwritten-like digits that the program draws itself.
//
// Sample `index` is a function of its index alone: the same bits on every machine, thread and compiler. The drawing
// uses only integers and + - * / and square roots of floats, which IEEE 754 rounds correctly, and no other math
// functions. A golden test pins the bits; when they change, kDigitsVersion must change, too.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "lockstep/data_set.hpp"

namespace lockstep::data {

inline constexpr int kDigitsVersion = 1;
inline constexpr std::int64_t kDigitSide = 28;

/// Samples first ... first + count - 1. Features image u8 [28, 28, 1] and label 0 ... 9; with `pairs` left,
/// right and label, which is 1 when both show the same digit (half of them do).
/// Throws Error(configuration) for a count below 1 or a negative first.
[[nodiscard]] std::unique_ptr<DataSet> make_digits(std::int64_t count, std::int64_t first = 0, bool pairs = false);

/// Draws `digit` into 28 x 28 bytes, ink bright on dark; `key` and `index` determine the handwriting and the noise.
void draw_digit(int digit, std::uint64_t key, std::uint64_t index, std::span<std::uint8_t> pixels);

}  // namespace lockstep::data
