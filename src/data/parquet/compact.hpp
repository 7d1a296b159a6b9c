// Thrift's compact protocol, in which Parquet writes its footer and the headers of its pages, as a tree: what is not
// asked for is passed over, as newer writers add fields. (Thrift's own library wants Boost and generated classes for
// what are a few lines.)
// https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/bytes.hpp"

namespace lockstep::data {

/// A value, of which that is filled in what its type has.
class CompactValue {
 public:
  std::int64_t number = 0;  ///< integers; bools as 0 and 1
  std::string bytes;
  std::vector<CompactValue> elements;  ///< of a list or a struct
  std::vector<int> fields;             ///< of a struct: the numbers of its elements

  /// nullptr: it has no such field.
  const CompactValue* find(int field) const;
  /// Throws Error(data) if it has no such field.
  const CompactValue& at(int field) const;
  std::int64_t number_of(int field, std::int64_t otherwise) const;
};

/// An unsigned number of 7 bits a byte, the lowest first.
[[nodiscard]] std::uint64_t read_varint(ByteReader& in);
/// A signed one: 0, -1, 1, -2, ... as 0, 1, 2, 3, ...
[[nodiscard]] std::int64_t read_zigzag(ByteReader& in);

/// A struct. Throws Error(data) where it is damaged.
[[nodiscard]] CompactValue read_compact(ByteReader& in);

}  // namespace lockstep::data
