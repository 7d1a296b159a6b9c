// How Parquet writes the values of a page.
// https://github.com/apache/parquet-format/blob/master/Encodings.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/bytes.hpp"

namespace lockstep::data {

/// How values are stored. Numbers are the format's.
enum class ParquetType : std::int8_t { boolean = 0, i32, i64, i96, f32, f64, bytes, fixed };

enum class ParquetEncoding : std::int8_t {
  plain = 0,
  plain_dictionary = 2,  ///< old writers' name of rle_dictionary
  rle = 3,
  delta_numbers = 5,
  delta_lengths = 6,
  delta_bytes = 7,
  rle_dictionary = 8,
  split_bytes = 9,
};

/// `count` numbers of `width` bits, at most 32, in runs and packed. The length is that of `in`, or where that is less,
/// of the numbers. Throws Error(data) for damaged ones.
[[nodiscard]] std::vector<std::uint32_t> read_runs(ByteReader& in, unsigned width, std::size_t count);

/// The bytes of each value: a number's in little-endian order (a boolean is one byte), or a text. `width`: bytes of a
/// value of type `fixed`. All encodings but dictionaries. Throws Error(data) for others and for damaged ones.
[[nodiscard]] std::vector<std::string> read_values(ByteReader& in, ParquetEncoding encoding, ParquetType type,
                                                   std::size_t width, std::size_t count);

}  // namespace lockstep::data
