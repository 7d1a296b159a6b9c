// The pages of a column: unpacked, with their dictionary, and where values are missing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/parquet/budget.hpp"
#include "data/parquet/column.hpp"
#include "data/parquet/compact.hpp"

namespace lockstep::data {

/// The values of a row group's column (`chunk`, as the footer has it), one for each of its `rows`, as texts; a null is
/// an empty one. `budget` has counted the rows, but not the characters. Throws Error(data).
[[nodiscard]] std::vector<std::string> read_column_chunk(std::string_view file, const CompactValue& chunk,
                                                         const ParquetColumn& column, std::int64_t rows,
                                                         ParquetBudget& budget);

}  // namespace lockstep::data
