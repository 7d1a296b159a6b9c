#include "data/readers/row_windows.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>

#include "core/digest.hpp"
#include "data/readers/prepare.hpp"
#include "data/statistics.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

/// Of a feature of a row the one of a window: the values of all rows, column by column.
void widen(Feature& feature, const RowWindow& window) {
  const std::size_t ahead = window.ahead.size();
  const std::int64_t columns = feature.spec.elements();
  if (ahead > 1) feature.spec.shape = {columns * std::ssize(window.ahead)};
  std::vector<double> offsets;
  for (const double offset : feature.offsets) offsets.insert(offsets.end(), ahead, offset);
  feature.offsets = std::move(offsets);
  std::vector<std::string> names;
  const auto of = feature.classes.empty() ? std::vector<std::string>{feature.name} : feature.classes;
  for (const std::string& column : of) {
    for (const std::int64_t rows : window.ahead) names.push_back(fmt::format("{}+{}", column, rows));
  }
  feature.classes = std::move(names);
}

/// By place in `order`: which of the `group` rows, in order of time, this one is. Rows of one time are one place.
struct Position {
  std::int64_t at = 0, group = 0;
};

std::vector<Position> positions_in_time(const std::vector<RowPlace>& places) {
  std::vector<double> times;
  for (const RowPlace& place : places) times.push_back(place.time);
  std::sort(times.begin(), times.end());
  std::vector<Position> positions;
  for (const RowPlace& place : places) {
    positions.push_back({std::lower_bound(times.begin(), times.end(), place.time) - times.begin(), std::ssize(times)});
  }
  return positions;
}

std::vector<Position> positions_in_series(const std::vector<RowPlace>& places) {
  std::vector<Position> positions;
  for (std::size_t begin = 0; begin < places.size();) {
    std::size_t end = begin;
    while (end < places.size() && places[end].series == places[begin].series) ++end;
    for (std::size_t i = begin; i < end; ++i) {
      positions.push_back({static_cast<std::int64_t>(i - begin), static_cast<std::int64_t>(end - begin)});
    }
    begin = end;
  }
  return positions;
}

bool is_held_out(const Position& row, const SplitOptions& options) {
  if (options.fold.of == 0) {
    return row.at >= row.group - std::llround(options.fraction * row.group);
  }
  const std::int64_t of = options.fold.of;
  return row.group * (options.fold.number - 1) / of <= row.at && row.at < row.group * options.fold.number / of;
}

}  // namespace

std::string window_text(const RowWindow& window) {
  if (window.rows == 0) return "single rows";
  const auto& ahead = window.ahead;
  const std::string rows = fmt::format("{} row{}", window.rows, window.rows == 1 ? "" : "s");
  if (ahead.back() == std::ssize(ahead)) return fmt::format("{}, the next {} predicted", rows, ahead.back());
  return fmt::format("{}, +{} predicted", rows, fmt::join(ahead, " +"));
}

RowWindows::RowWindows(std::shared_ptr<const DataSet> rows, const RowWindow& window,
                       const std::vector<RowPlace>& places, bool has_times) {
  Table table{std::move(rows), {}, {}, has_times};
  table.order.resize(places.size());
  std::iota(table.order.begin(), table.order.end(), 0);
  const auto place = [&](std::int64_t row) { return places[row]; };
  std::stable_sort(table.order.begin(), table.order.end(),
                   [&](std::int64_t a, std::int64_t b) { return place(a).series < place(b).series; });
  for (const std::int64_t row : table.order) table.places.push_back(place(row));
  table_ = std::make_shared<const Table>(std::move(table));
  has_targets_ = table_->rows->info().features.size() > 1;
  info_.window = window;
  starts_ = all_starts();
  if (starts_.empty()) {
    const std::string behind = has_targets_ ? fmt::format(" and {} behind it", window.ahead.back()) : "";
    throw Error(ExitCode::data,
                fmt::format("{}: expected {} rows in a row for a window{}, found fewer; add rows, or make "
                            "`window` shorter",
                            table_->rows->info().source, window.rows, behind));
  }
  describe();
}

RowWindows::RowWindows(std::shared_ptr<const Table> table, const RowWindow& window, bool has_targets,
                       std::vector<std::size_t> starts)
    : table_(std::move(table)), has_targets_(has_targets), starts_(std::move(starts)) {
  info_.window = window;
  describe();
}

std::int64_t RowWindows::reach() const {
  return info_.window.rows + (has_targets_ ? info_.window.ahead.back() : 0);
}

std::vector<std::size_t> RowWindows::all_starts() const {
  std::vector<std::size_t> starts;
  const auto& places = table_->places;
  const std::size_t last = reach() - 1;
  for (std::size_t first = 0; first + last < places.size(); ++first) {
    const RowPlace &begin = places[first], &end = places[first + last];
    // Numbers of a series ascend, so rows are successive if the ends are as far apart as that.
    if (begin.series == end.series && end.number - begin.number == reach() - 1) starts.push_back(first);
  }
  return starts;
}

/// Says what a sample is, and what the rows come to that these windows have as inputs, each row once.
void RowWindows::describe() {
  const RowWindow window = info_.window;
  info_ = table_->rows->info();
  info_.window = window;
  for (Feature& feature : info_.features) {
    if (feature.kind == Feature::Kind::columns) feature.spec.shape.insert(feature.spec.shape.begin(), window.rows);
    if (feature.kind == Feature::Kind::tensor) widen(feature, window);
  }
  std::fill(info_.class_counts.begin(), info_.class_counts.end(), 0);
  std::vector<bool> used(table_->order.size());
  for (std::int64_t id = 0; id < size(); ++id) {
    const std::int64_t of_class = label(id);
    if (of_class >= 0 && of_class < std::ssize(info_.class_counts)) {
      ++info_.class_counts[of_class];
    }
    for (std::int64_t i = 0; i < window.rows; ++i) used[row(id, i)] = true;
  }
  std::vector<std::int64_t> rows;
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) rows.push_back(i);
  }
  const ChannelStatistics statistics = channel_statistics(*make_view(table_->rows, std::move(rows)), {});
  info_.mean = statistics.mean;
  info_.stddev = statistics.stddev;
  Sha256 digest;
  digest.add(fmt::format("{}\n{} {}\n", table_->rows->info().digest, window.rows, fmt::join(window.ahead, " ")));
  digest.add(std::as_bytes(std::span(table_->order)));
  digest.add(std::as_bytes(std::span(starts_)));
  info_.digest = digest.hex();
}

std::int64_t RowWindows::label(std::int64_t id) const {
  return has_targets_ ? table_->rows->label(row(id, info_.window.rows - 1 + info_.window.ahead.front())) : -1;
}

void RowWindows::read(std::int64_t id, Sample& out) const {
  LOCKSTEP_CHECK(id >= 0 && id < size(), "the number of a window");
  const RowWindow& window = info_.window;
  prepare_names(out, info_.features);
  for (std::size_t i = 0; i < info_.features.size(); ++i) prepare(out[i].tensor, info_.features[i].spec);
  Sample one;
  for (std::int64_t i = 0; i < window.rows; ++i) {
    table_->rows->read(row(id, i), one);
    std::memcpy(out[0].tensor.bytes() + i * one[0].tensor.spec().bytes(), one[0].tensor.bytes(),
                one[0].tensor.spec().bytes());
  }
  for (std::size_t i = 0; has_targets_ && i < window.ahead.size(); ++i) {
    table_->rows->read(row(id, window.rows - 1 + window.ahead[i]), one);
    for (std::size_t f = 1; f < out.size(); ++f) {
      const Tensor& from = one[f].tensor;
      const std::size_t width = from.spec().bytes() / from.elements();
      for (std::size_t column = 0; column < static_cast<std::size_t>(from.elements()); ++column) {
        std::memcpy(out[f].tensor.bytes() + (column * window.ahead.size() + i) * width, from.bytes() + column * width,
                    width);
      }
    }
  }
}

std::vector<bool> RowWindows::held_out(const SplitOptions& options) const {
  std::vector<bool> held;
  for (const Position& row :
       table_->has_times ? positions_in_time(table_->places) : positions_in_series(table_->places)) {
    held.push_back(is_held_out(row, options));
  }
  return held;
}

Split RowWindows::cut(const SplitOptions& options) const {
  if (!options.list.empty() || options.stratify.value_or(false)) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: windows of a time series are split by time, for the rows of one are in others, too; "
                            "give a fraction or a fold, without stratify",
                            info_.source));
  }
  std::vector<std::int64_t> held_before{0};  // by place in `order`
  for (const bool held : held_out(options)) held_before.push_back(held_before.back() + (held ? 1 : 0));
  std::vector<std::size_t> train, validation;
  for (const std::size_t start : starts_) {
    const std::int64_t held = held_before[start + reach()] - held_before[start];
    if (held == 0) train.push_back(start);
    if (held == reach()) validation.push_back(start);
  }
  if (train.empty() || validation.empty()) {
    throw Error(
        ExitCode::configuration,
        fmt::format("{}: {} windows of {} rows, with what they predict, for training and {} for validation; each "
                    "needs one at least",
                    info_.source, train.size(), reach(), validation.size()));
  }
  const std::size_t over = starts_.size() - train.size() - validation.size();
  Split split{part(std::move(train)), part(std::move(validation))};
  if (over > 0) {
    auto& windows = dynamic_cast<RowWindows&>(*split.train);
    windows.info_.warnings.push_back(fmt::format("{} {} over a border between training and validation: left out", over,
                                                 over == 1 ? "window reaches" : "windows reach"));
  }
  return split;
}

std::unique_ptr<RowWindows> RowWindows::part(std::vector<std::size_t> starts) const {
  return std::unique_ptr<RowWindows>(new RowWindows(table_, info_.window, has_targets_, std::move(starts)));
}

}  // namespace lockstep::data
