// A column of a Parquet file: what its values mean, and how a CSV would say them.
// https://github.com/apache/parquet-format/blob/master/LogicalTypes.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "data/parquet/compact.hpp"
#include "data/parquet/encodings.hpp"

namespace lockstep::data {

struct ParquetColumn {
  enum class Meaning : std::int8_t { boolean, integer, unsigned_integer, decimal, date, time, timestamp, real, text };

  std::string name;
  ParquetType type = ParquetType::bytes;
  std::size_t width = 0;  ///< bytes of a value of type `fixed`
  bool optional = false;  ///< may hold nulls
  Meaning meaning = Meaning::text;
  int digits = 0;            ///< behind the point: of a decimal, or of the seconds of a time or timestamp
  std::size_t chunk = 0;     ///< which chunk of a row group has its values
  std::string refusal = {};  ///< why it is not read: it has lists; empty: it is

  /// `raw` as read_values() returns it. Numbers are written so that reading them gives the same number again; what is
  /// not a number is written as nothing. Throws Error(data) if it has the wrong length.
  std::string text_of(const std::string& raw) const;
};

/// Of an element of the footer's schema, with a refusal for lists, groups and what is no value to learn from.
[[nodiscard]] ParquetColumn parquet_column(const CompactValue& schema);
/// How many elements are below one of the schema.
[[nodiscard]] std::int64_t children_of(const CompactValue& schema);

}  // namespace lockstep::data
