// A time series: each sample is a window of successive rows of a table, with targets of rows behind it
// (DataSetInfo::window). Its name is that of the window's last row, from which the targets are counted.
//
// It is split by time: no row is in both parts, neither as an input nor as a target. Windows that reach over a border
// are in neither.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/readers/row_order.hpp"
#include "data/split.hpp"
#include "lockstep/data_set.hpp"

namespace lockstep::data {

/// "48 rows, the next 24 predicted".
[[nodiscard]] std::string window_text(const RowWindow& window);

class RowWindows final : public DataSet {
 public:
  /// All windows of `rows`, a table, each row of which has its place. Those of rows to predict for end with each row
  /// that has enough before it; others have all of their targets. Throws Error(data) if there are none.
  RowWindows(std::shared_ptr<const DataSet> rows, const RowWindow& window, const std::vector<RowPlace>& places,
             bool has_times);

  const DataSetInfo& info() const override { return info_; }
  std::int64_t size() const override { return std::ssize(starts_); }
  std::uint64_t bytes_read() const override { return table_->rows->bytes_read(); }
  std::string name(std::int64_t id) const override { return table_->rows->name(last_row(id)); }
  std::int64_t label(std::int64_t id) const override;
  void read(std::int64_t id, Sample& out) const override;

  /// The last part in time, or a fold: a part between two times, or, where these are not known, that much of each
  /// series. Throws Error(configuration) for what cannot be cut so, and for a part without windows.
  Split cut(const SplitOptions& options) const;

 private:
  struct Table {
    std::shared_ptr<const DataSet> rows;
    std::vector<std::int64_t> order;  ///< rows by series, then time
    std::vector<RowPlace> places;     ///< in that order
    bool has_times = false;
  };
  RowWindows(std::shared_ptr<const Table> table, const RowWindow& window, bool has_targets,
             std::vector<std::size_t> starts);
  /// The number of a row in `rows`; `behind` the first of the window.
  std::int64_t row(std::int64_t id, std::int64_t behind) const { return table_->order[starts_[id] + behind]; }
  std::int64_t last_row(std::int64_t id) const { return row(id, info_.window.rows - 1); }
  /// Rows from a window's first to the last that it has targets of.
  std::int64_t reach() const;
  std::vector<std::size_t> all_starts() const;
  void describe();
  std::vector<bool> held_out(const SplitOptions& options) const;
  std::unique_ptr<RowWindows> part(std::vector<std::size_t> starts) const;

  std::shared_ptr<const Table> table_;
  DataSetInfo info_;
  bool has_targets_ = false;
  std::vector<std::size_t> starts_;  ///< of each window the first row, a place in `order`
};

}  // namespace lockstep::data
