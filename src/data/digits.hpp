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

struct DigitForm {
  bool pairs = false;     ///< two digits a sample
  bool masks = false;     ///< beside the image where its ink is
  bool same = false;      ///< with pairs: both are equal
  bool triplets = false;  ///< three digits a sample
};

/// Samples first ... first + count - 1. Features image u8 [28, 28, 1] and label 0 ... 9; with `pairs` left,
/// right and label, which is 1 when both show the same digit (half of them do), or, with `same`, which digit both show;
/// with `triplets` anchor, positive, negative and label, the digit of the first two; with `masks` image, mask and
/// label. Throws Error(configuration) for a count below 1, a negative first, several of these, or `same` without pairs.
[[nodiscard]] std::unique_ptr<DataSet> make_digits(std::int64_t count, std::int64_t first = 0,
                                                   const DigitForm& form = {});

/// Draws `digit` into 28 x 28 bytes, ink bright on dark; `key` and `index` determine the handwriting and the noise.
/// `mask`, if it is not empty: 255 for each pixel at least half of which is ink, else 0.
void draw_digit(int digit, std::uint64_t key, std::uint64_t index, std::span<std::uint8_t> pixels,
                std::span<std::uint8_t> mask = {});

}  // namespace lockstep::data
