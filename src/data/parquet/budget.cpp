#include "data/parquet/budget.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "data/readers/csv_table.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

std::uint64_t memory_of_host() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
}

}  // namespace

ParquetBudget::ParquetBudget(std::string path, std::uint64_t file_bytes, const UnpackLimits& limits)
    : path_(std::move(path)),
      most_(std::min(memory_of_host(), std::max(limits.held_without_copy, file_bytes * limits.expansion))) {}

void ParquetBudget::hold_rows(std::uint64_t rows, std::uint64_t columns) {
  rows_ = rows;
  columns_ = columns;
  const std::uint64_t row = sizeof(CsvRow) + columns * sizeof(std::string);
  hold(rows > most_ / row ? most_ + 1 : rows * row);  // the product may wrap around
}

void ParquetBudget::hold(std::uint64_t bytes) {
  require(bytes);
  held_ += bytes;
}

void ParquetBudget::require(std::uint64_t bytes) const {
  if (bytes <= most_ && held_ <= most_ - bytes) return;
  throw Error(
      ExitCode::data,
      fmt::format("{}: expected a table that takes up to {} MiB of memory, found more in {} rows of {} columns; "
                  "write fewer rows, or only the columns that are used",
                  path_, most_ >> 20U, rows_, columns_));
}

}  // namespace lockstep::data
