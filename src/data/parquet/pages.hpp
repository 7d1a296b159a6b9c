// The pages of a column: unpacked, with their dictionary, and where values are missing.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/parquet/column.hpp"
#include "data/parquet/compact.hpp"

namespace lockstep::data {

/// The values of a row group's column (`chunk`, as the footer has it), by row, as texts; a null is an empty one.
/// `count_bytes` hears how many bytes they take, as they are read, and may throw. Throws Error(data).
[[nodiscard]] std::vector<std::string> read_column_chunk(std::string_view file, const CompactValue& chunk,
                                                         const ParquetColumn& column,
                                                         const std::function<void(std::uint64_t)>& count_bytes);

}  // namespace lockstep::data
