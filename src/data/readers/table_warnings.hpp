// Warnings about what the columns of a training table hold: copies of a target, numbers that stand for missing values,
// and numbers that leave nothing of the others.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/data_set.hpp"

namespace lockstep::data {

/// A table row by row, [rows, columns]: of categories and classes their numbers; NaN is missing.
struct TableCells {
  const std::vector<Column>& columns;
  std::span<const double> cells;
  const std::vector<std::string>& targets;               ///< those that are numbers, and those that are classes
  const std::vector<std::vector<std::string>>& classes;  ///< by target; empty: a number
  std::span<const double> numbers;                       ///< [rows, targets that are numbers]
  std::span<const std::int32_t> labels;                  ///< [rows, targets that are classes]
};

/// Features that equal a target, or have one value for each of its values.
[[nodiscard]] std::vector<std::string> copy_warnings(const TableCells& table);

/// Columns where a number that others write for missing values, such as -999, occurs several times and lies farther
/// from the other numbers than these from each other.
[[nodiscard]] std::vector<std::string> mark_warnings(const TableCells& table);

/// Columns of numbers in which so few values lie so far from the others that mean and standard deviation are theirs:
/// normalized, the others are nearly alike. `place(row)`: "data.csv:7".
[[nodiscard]] std::vector<std::string> outlier_warnings(const TableCells& table,
                                                        const std::function<std::string(std::size_t)>& place);

}  // namespace lockstep::data
