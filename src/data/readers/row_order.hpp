// The order of a time series' rows: which series each belongs to, when it was, and which rows are successive. A row
// that is left out since it is bad leaves a gap, over which no window reaches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/readers/table_columns.hpp"
#include "lockstep/data_set.hpp"

namespace lockstep::data {

struct RowPlace {
  std::size_t series = 0;
  std::int64_t number = 0;  ///< in its series, bad rows counted
  double time = 0;          ///< days, or what the column has; without a column of times the same as `number`
};

class RowOrder {
 public:
  /// `window` and `files` must outlive this. Throws Error(data) for several files in an order that nothing tells, and
  /// for times that are neither dates nor numbers.
  RowOrder(const RowWindow& window, const std::vector<TableFile>& files);

  /// Begins the rows of a file.
  void open(const TableFile& file);
  /// The next row: says what is wrong with it, or "".
  [[nodiscard]] std::string read(std::size_t row);
  /// The row that was read is used. Throws Error(data) if it is not later than the one before in its series.
  void keep(std::size_t row);
  /// The next row has no fields that mean anything, so it may be of any series.
  void pass_over() { ++breaks_; }

  const std::vector<RowPlace>& places() const { return places_; }
  bool has_times() const { return !window_.time.empty(); }
  /// About steps of time that are much longer than most, or that cannot be told. `names`: of the rows that are kept.
  std::vector<std::string> warnings(const std::vector<std::string>& names) const;

 private:
  struct Last {
    bool any = false;
    std::int64_t number = -1, breaks = 0;
    double time = 0;
    std::string text;  ///< of the time
  };
  const RowWindow& window_;
  bool dates_ = false;
  std::string compact_date_;  ///< of ColumnValues
  const TableFile* file_ = nullptr;
  std::size_t series_column_ = 0, time_column_ = 0;
  std::int64_t breaks_ = 0;
  std::map<std::string, std::size_t, std::less<>> numbers_;  ///< of series, by name
  std::vector<Last> last_;                                   ///< by series
  RowPlace row_;
  std::vector<RowPlace> places_;
  std::vector<double> steps_;  ///< by row that is kept: the time since the one before in its series; 0: there is none
};

}  // namespace lockstep::data
