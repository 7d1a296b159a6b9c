// The embedded data set: handwritten-like digits that the program draws itself. They are synthetic.
//
// Sample `index` is a function of its index alone: the same bits on every machine, thread and compiler. The
// drawing uses only integers and + - * / and square roots of floats, which IEEE 754 rounds correctly, and no
// other function of the mathematics library. A golden test pins the bits; kDigitsVersion changes with them.
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

/// Draws `digit` as writer and noise number `index` of `key` into 28 x 28 bytes, ink bright on dark.
void draw_digit(int digit, std::uint64_t key, std::uint64_t index, std::span<std::uint8_t> pixels);

}  // namespace lockstep::data
