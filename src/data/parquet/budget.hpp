// How much memory a Parquet file's table may take.
//
// How far a file packs says nothing of whether it is sound: a million rows of one value are a run of some ten bytes. So
// it is not the bytes that are weighed but the memory that the table takes: each row and each field, which the footer
// has the number of before a page is unpacked, and the characters of texts, as they are read. The pages of a column
// have as many values as the footer says, or the file is damaged.
#pragma once

#include <cstdint>
#include <string>

#include "data/unpack.hpp"

namespace lockstep::data {

class ParquetBudget {
 public:
  /// The most is limits.held_without_copy, or limits.expansion times the file if that is more, but not more than the
  /// host has.
  ParquetBudget(std::string path, std::uint64_t file_bytes, const UnpackLimits& limits);

  /// Counts all rows, of so many fields. Throws Error(data), as the others do, if that is too much.
  void hold_rows(std::uint64_t rows, std::uint64_t columns);
  /// Counts characters.
  void hold(std::uint64_t bytes);
  /// Bytes that are needed for a moment.
  void require(std::uint64_t bytes) const;

 private:
  std::string path_;
  std::uint64_t most_, held_ = 0, rows_ = 0, columns_ = 0;
};

}  // namespace lockstep::data
