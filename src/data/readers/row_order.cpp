#include "data/readers/row_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "lockstep/error.hpp"

namespace lockstep::data {

RowOrder::RowOrder(const RowWindow& window, const std::vector<TableFile>& files) : window_(window) {
  if (window.series.empty()) last_.resize(1);
  if (window.time.empty()) {
    if (files.size() > 1 && window.series.empty()) {
      throw Error(ExitCode::data,
                  fmt::format("{}: expected one file, since nothing says whether its rows are followed by those of {}; "
                              "name the column of times under `time`",
                              files[0].path, files[1].path));
    }
    return;
  }
  const ColumnValues values = look_at_column(files, window.time, false);
  dates_ = values.are_dates();
  compact_date_ = values.compact_date;
  if (dates_ || (values.are_numbers() && values.present() > 0)) return;
  throw Error(ExitCode::data,
              fmt::format("{}: column '{}': expected times, dates such as 2024-05-01 12:30:00 or numbers, "
                          "found neither; name another column under `time`",
                          files[0].path, window.time));
}

void RowOrder::open(const TableFile& file) {
  file_ = &file;
  if (!window_.series.empty()) series_column_ = readable_column(file, window_.series);
  if (has_times()) time_column_ = readable_column(file, window_.time);
}

std::string RowOrder::read(std::size_t row) {
  const auto& fields = file_->rows[row].fields;
  row_ = {};
  if (!window_.series.empty()) {
    const std::string& value = fields[series_column_];
    if (is_missing(value)) {
      pass_over();
      return fmt::format("{}: expected the name of a series, found nothing", file_->place(row, window_.series));
    }
    row_.series = numbers_.try_emplace(category_key(value), numbers_.size()).first->second;
    last_.resize(numbers_.size());
  }
  Last& last = last_[row_.series];
  row_.number = last.number += 1 + breaks_ - last.breaks;
  last.breaks = breaks_;
  row_.time = row_.number;
  if (!has_times()) return "";
  const std::string& value = fields[time_column_];
  const auto time = dates_ ? days_in(value) : number_in(value);
  row_.time = time.value_or(0);
  if (time && std::isfinite(*time)) return "";
  return fmt::format("{}: expected {}, found '{}'", file_->place(row, window_.time),
                     dates_ ? "a date such as 2024-05-01" : "a number", value);
}

void RowOrder::keep(std::size_t row) {
  Last& last = last_[row_.series];
  double step = 0;
  if (has_times()) {
    const std::string& text = file_->rows[row].fields[time_column_];
    if (last.any && row_.time <= last.time) {
      throw Error(ExitCode::data,
                  fmt::format("{}: expected a later time than {}, as the row before has, found {}; {}",
                              file_->place(row, window_.time), last.text, text,
                              window_.series.empty()
                                  ? "sort the rows by it, or name the column that tells several series apart: `series`"
                                  : "sort the rows of each series by it"));
    }
    if (last.any) step = row_.time - last.time;
    last.text = text;
  }
  last.any = true;
  last.time = row_.time;
  places_.push_back(row_);
  steps_.push_back(step);
}

std::vector<std::string> RowOrder::warnings(const std::vector<std::string>& names) const {
  if (!compact_date_.empty()) {
    return {
        fmt::format("column '{}': looks like dates, such as {}, which are read as numbers, so gaps are not seen; write "
                    "them as 2024-05-01",
                    window_.time, compact_date_)};
  }
  constexpr double kLonger = 1.5;  // months differ by less
  std::vector<double> steps;
  std::copy_if(steps_.begin(), steps_.end(), std::back_inserter(steps), [](double step) { return step > 0; });
  if (steps.empty()) return {};
  const auto middle = steps.begin() + (steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end());
  const auto is_gap = [usual = *middle](double step) { return step > kLonger * usual; };
  const auto gaps = std::count_if(steps_.begin(), steps_.end(), is_gap);
  if (gaps == 0) return {};
  const auto first = std::find_if(steps_.begin(), steps_.end(), is_gap) - steps_.begin();
  return {fmt::format("column '{}': more time than usual lies before {} {}, first before {}: windows reach over it",
                      window_.time, gaps, gaps == 1 ? "row" : "rows", names[first])};
}

}  // namespace lockstep::data
