// A CSV with a header row, or a Parquet file, whose columns are what is predicted and what it is predicted from.
// Columns of numbers, dates and categories become one feature, `features`, of doubles, so that normalising rounds once;
// the target, `label`, is a number, several numbers, or a class. Where a job has several losses, several targets are a
// feature each, by the names of their columns.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>

#include "core/digest.hpp"
#include "core/words.hpp"
#include "data/readers/common.hpp"
#include "data/readers/file.hpp"
#include "data/readers/prepare.hpp"
#include "data/readers/readers.hpp"
#include "data/readers/row_order.hpp"
#include "data/readers/row_windows.hpp"
#include "data/readers/table_layout.hpp"
#include "data/readers/table_warnings.hpp"
#include "data/sample_identities.hpp"
#include "data/sample_weights.hpp"
#include "data/target_offsets.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

/// A cell of a column of categories: one that training lacks. A missing value is NaN.
constexpr double kUnknown = -1;

/// All rows, decoded.
struct TableRows {
  DataSetInfo info;
  std::vector<std::string> names;    ///< by row: "houses.csv:17"
  std::vector<double> cells;         ///< [rows, columns]: a number, days, or which of the column's categories
  std::vector<double> numbers;       ///< [rows, targets that are numbers], until they are rounded
  std::vector<float> targets;        ///< [rows, targets that are numbers]
  std::vector<std::int32_t> labels;  ///< [rows, targets that are classes]
  std::vector<float> weights;        ///< [rows]; empty: none
};

/// Whether columns have so many values that hardly two rows are alike by chance.
bool are_told_apart(const TableRows& rows) {
  constexpr std::size_t kLooked = 10'000;
  constexpr double kTimes = 10;
  const std::size_t columns = rows.info.columns.size(), looked = std::min(rows.names.size(), kLooked);
  double combinations = 1;
  for (std::size_t c = 0; c < columns; ++c) {
    std::set<double> values;
    for (std::size_t row = 0; row < looked; ++row) {
      if (const double cell = rows.cells[row * columns + c]; !std::isnan(cell)) values.insert(cell);
    }
    combinations *= std::max<std::size_t>(values.size(), 1);
  }
  return combinations > kTimes * rows.names.size();
}

class Table final : public DataSet, public KnowsIdentities {
 public:
  Table(TableRows rows, ByteCounter counter)
      : rows_(std::move(rows)), counter_(std::move(counter)), has_identities_(are_told_apart(rows_)) {}

  const DataSetInfo& info() const override { return rows_.info; }
  std::int64_t size() const override { return std::ssize(rows_.names); }
  std::uint64_t bytes_read() const override { return *counter_; }
  std::string name(std::int64_t id) const override { return rows_.names.at(id); }
  std::int64_t label(std::int64_t id) const override {
    const bool has_classes = !rows_.info.class_names.empty() && !rows_.labels.empty();
    return has_classes ? rows_.labels.at(id) : -1;
  }

  void add_identities(std::int64_t id, std::vector<std::uint64_t>& out) const override {
    if (!has_identities_) return;
    std::string row;
    const auto add = [&](const auto& all) {
      const std::size_t each = all.size() / rows_.names.size();
      const auto bytes = std::as_bytes(std::span(all).subspan(id * each, each));
      row.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    add(rows_.cells);
    add(rows_.targets);
    add(rows_.labels);
    out.push_back(identity_of(row));
  }

  void read(std::int64_t id, Sample& out) const override {
    LOCKSTEP_CHECK(id >= 0 && id < size(), "the number of a row");
    const auto& features = rows_.info.features;
    prepare_names(out, features);
    for (std::size_t i = 0; i < features.size(); ++i) prepare(out[i].tensor, features[i].spec);
    write_features(id, out[0].tensor.as<double>());
    std::int64_t number = id * (std::ssize(rows_.targets) / size()), label = id * (std::ssize(rows_.labels) / size());
    for (std::size_t i = 1; i < features.size(); ++i) {
      Tensor& tensor = out[i].tensor;
      if (features[i].kind == Feature::Kind::weight) {
        copy(rows_.weights, id, tensor);
      } else if (features[i].kind == Feature::Kind::label) {
        set_label(tensor, rows_.labels[label++]);
      } else {
        copy(rows_.targets, number, tensor);
        number += tensor.elements();
      }
    }
  }

 private:
  void write_features(std::int64_t id, std::span<double> out) const {
    const auto& columns = rows_.info.columns;
    std::fill(out.begin(), out.end(), 0);
    const double* cell = rows_.cells.data() + id * columns.size();
    std::size_t element = 0;
    for (const Column& column : columns) {
      const double value = *cell++;
      const bool missing = std::isnan(value);
      if (column.categories.empty()) {
        out[element] = value;
      } else if (!missing && value != kUnknown) {
        out[element + static_cast<std::size_t>(value)] = 1;
      }
      element += column.elements();
      if (column.missing && missing) out[element - 1] = 1;
    }
  }

  static void copy(const std::vector<float>& from, std::int64_t first, Tensor& to) {
    const auto out = to.as<float>();
    std::copy_n(from.begin() + first, out.size(), out.begin());
  }

  TableRows rows_;
  ByteCounter counter_;
  bool has_identities_;
};

/// Names by what their spellings have in common.
class NameNumbers {
 public:
  explicit NameNumbers(const std::vector<std::string>& names) : names_(names) {
    for (std::size_t i = 0; i < names.size(); ++i) numbers_.emplace(category_key(names[i]), i);
  }
  std::optional<std::size_t> of(const std::string& value) const {
    const auto found = numbers_.find(category_key(value));
    return found == numbers_.end() ? std::nullopt : std::optional(found->second);
  }
  std::string unknown(const std::string& value) const {
    return fmt::format("expected one of {}, as in the training set, found '{}'", few_of(names_, 10), value);
  }

 private:
  const std::vector<std::string>& names_;
  std::unordered_map<std::string, std::size_t> numbers_;
};

/// Decodes rows, and notes what is wrong with them.
class Decoder {
 public:
  /// `order`: of a time series; null: none.
  Decoder(const TableLayout& layout, TableRows& rows, RowOrder* order)
      : layout_(layout), source_(layout.source()), rows_(rows), order_(order) {
    for (const Column& column : layout.columns) categories_.emplace_back(column.categories);
    for (const auto& classes : layout.classes) classes_.emplace_back(classes);
  }

  void add(const TableFile& file) {
    std::vector<std::size_t> features, targets;
    for (const Column& column : layout_.columns) features.push_back(readable_column(file, column.name));
    for (const auto& name : source_.target) targets.push_back(readable_column(file, name));
    const bool has_weights = !source_.weight.empty() && !targets.empty();
    const std::size_t of_weight = has_weights ? readable_column(file, source_.weight) : 0;
    if (order_ != nullptr) order_->open(file);
    for (std::size_t row = 0; row < file.rows.size(); ++row) {
      if (const CsvRow& read = file.rows[row]; !read.fault.empty()) {
        faults.push_back(fmt::format("{}:{}: {}", file.path, read.line, read.fault));
        if (order_ != nullptr) order_->pass_over();
        continue;
      }
      fault_ = order_ == nullptr ? "" : order_->read(row);
      cells_.clear();
      const auto& fields = file.rows[row].fields;
      for (std::size_t i = 0; i < features.size(); ++i) add_feature(file, row, i, fields[features[i]]);
      const Targets wanted = targets_in(file, row, targets);
      const float weight = has_weights ? weight_in(file, row, fields[of_weight]) : 1;
      if (!fault_.empty()) {
        faults.push_back(fault_);
        continue;
      }
      if (order_ != nullptr) order_->keep(row);
      rows_.names.push_back(fmt::format("{}:{}", file.path, file.rows[row].line));
      rows_.cells.insert(rows_.cells.end(), cells_.begin(), cells_.end());
      rows_.numbers.insert(rows_.numbers.end(), wanted.numbers.begin(), wanted.numbers.end());
      rows_.labels.insert(rows_.labels.end(), wanted.labels.begin(), wanted.labels.end());
      if (has_weights) rows_.weights.push_back(weight);
    }
  }

  std::vector<std::string> faults;
  std::map<std::string, std::int64_t> filled;   ///< by column: values that are missing here, but not in training
  std::map<std::string, std::int64_t> unknown;  ///< by column: categories that training lacks, which are ignored

 private:
  /// Of a row the first one counts.
  void note(const TableFile& file, std::size_t row, const std::string& column, const std::string& what) {
    if (fault_.empty()) fault_ = fmt::format("{}: {}", file.place(row, column), what);
  }

  double number(const TableFile& file, std::size_t row, const std::string& column, const std::string& value) {
    const auto found = number_in(value);
    if (!found) {
      note(file, row, column,
           fmt::format("expected a number, as in the other rows, found '{}'; or add the column to `categorical`",
                       value));
      return 0;
    }
    if (!std::isfinite(static_cast<float>(*found)))
      note(file, row, column, fmt::format("expected a number that fp32 can hold, found '{}'", value));
    return *found;
  }

  struct Targets {
    std::vector<double> numbers;
    std::vector<std::int32_t> labels;
  };

  Targets targets_in(const TableFile& file, std::size_t row, const std::vector<std::size_t>& columns) {
    Targets found;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::string& value = file.rows[row].fields[columns[i]];
      if (is_missing(value)) {
        note(file, row, source_.target[i], missing_target(value));
      } else if (!layout_.classes[i].empty()) {
        found.labels.push_back(class_in(file, row, i, value));
      } else {
        found.numbers.push_back(target_number(file, row, source_.target[i], value));
      }
    }
    return found;
  }

  /// True and false of several targets are 1 and 0.
  double target_number(const TableFile& file, std::size_t row, const std::string& column, const std::string& value) {
    const auto truth = source_.target.size() > 1 ? boolean_in(value) : std::nullopt;
    return truth ? *truth : number(file, row, column, value);
  }

  float weight_in(const TableFile& file, std::size_t row, const std::string& value) {
    const auto weight = parse_weight(value);
    if (!weight) {
      note(file, row, source_.weight, fmt::format("expected a weight, a number of at least 0, found '{}'", value));
    }
    return weight.value_or(0);
  }

  std::int32_t class_in(const TableFile& file, std::size_t row, std::size_t target, const std::string& value) {
    const auto found = classes_[target].of(value);
    if (!found) note(file, row, source_.target[target], classes_[target].unknown(value));
    return found.value_or(0);
  }

  void add_feature(const TableFile& file, std::size_t row, std::size_t number_of_column, const std::string& value) {
    const Column& column = layout_.columns[number_of_column];
    const bool missing = is_missing(value);
    if (missing && !column.missing) ++filled[column.name];
    if (missing) {
      cells_.push_back(std::numeric_limits<double>::quiet_NaN());
    } else if (column.dates) {
      const auto days = days_in(value);
      if (!days) note(file, row, column.name, fmt::format("expected a date such as 2024-05-01, found '{}'", value));
      cells_.push_back(days.value_or(0));
    } else if (column.categories.empty()) {
      cells_.push_back(number(file, row, column.name, value));
    } else {
      const NameNumbers& categories = categories_[number_of_column];
      const auto found = categories.of(value);
      if (!found && source_.unknown == UnknownCategory::ignore) ++unknown[column.name];
      if (!found && source_.unknown == UnknownCategory::refuse)
        note(file, row, column.name,
             fmt::format("{}, which {} takes for none of them", categories.unknown(value),
                         is_predicted(source_) ? "data.train.table.unknown=ignore" : "`unknown: ignore`"));
      cells_.push_back(found ? static_cast<double>(*found) : kUnknown);
    }
  }

  const TableLayout& layout_;
  const SourceOptions& source_;
  TableRows& rows_;
  RowOrder* order_;
  std::vector<NameNumbers> categories_, classes_;  ///< by feature, by target
  std::string fault_;
  std::vector<double> cells_;
};

/// What the digest has of features: the bytes that fp32 has of them, and of columns of which it does not tell all
/// values apart the doubles, too.
void add_features(Sha256& digest, const TableRows& rows) {
  const auto& columns = rows.info.columns;
  std::vector<float> row;
  for (std::size_t at = 0; at < rows.cells.size(); at += columns.size()) {
    row.clear();
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const double cell = rows.cells[at + c];
      if (columns[c].categories.empty()) {
        row.push_back(cell);
      } else {
        const std::size_t first = row.size();
        row.resize(first + columns[c].categories.size());
        if (cell >= 0) row[first + static_cast<std::size_t>(cell)] = 1;
      }
      if (columns[c].missing) row.push_back(std::isnan(cell) ? 1.0F : 0.0F);
    }
    digest.add(std::as_bytes(std::span(row)));
  }
  for (std::size_t c = 0; c < columns.size(); ++c) {
    std::vector<double> values;
    for (std::size_t at = c; at < rows.cells.size(); at += columns.size()) {
      if (columns[c].categories.empty() && !std::isnan(rows.cells[at])) values.push_back(rows.cells[at]);
    }
    auto sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const auto confused = std::adjacent_find(sorted.begin(), sorted.end(), [](double a, double b) {
      return a != b && static_cast<float>(a) == static_cast<float>(b);
    });
    if (confused != sorted.end()) digest.add(std::as_bytes(std::span(values)));
  }
}

void describe_rows(const TableLayout& layout, TableRows& rows) {
  const SourceOptions& source = layout.source();
  DataSetInfo& info = rows.info;
  info.columns = layout.columns;
  info.features = {{kTableFeatures, Feature::Kind::columns, {DType::f64, {layout.elements()}}}};
  if (!layout.apart() && !layout.classes.empty()) info.class_names = layout.classes[0];
  if (source.target.empty()) {  // rows to predict for
    info.class_counts.clear();
  } else if (layout.apart()) {
    for (std::size_t i = 0; i < source.target.size(); ++i) {
      const bool of_classes = !layout.classes[i].empty();
      info.features.push_back({source.target[i],
                               of_classes ? Feature::Kind::label : Feature::Kind::tensor,
                               {of_classes ? DType::i32 : DType::f32, {}},
                               layout.classes[i]});
    }
  } else if (!info.class_names.empty()) {
    info.features.push_back({"label", Feature::Kind::label, {DType::i32, {}}});
    info.class_counts.assign(info.class_names.size(), 0);
    for (const auto label : rows.labels) ++info.class_counts[label];
  } else {
    Feature& label = info.features.emplace_back(Feature{"label", Feature::Kind::tensor, {DType::f32, {}}, {}});
    if (source.target.size() > 1) label.spec.shape = {std::ssize(source.target)};
    label.classes = source.target;
  }
  if (!rows.weights.empty()) info.features.push_back(weight_feature());
}

void compute_digest(const TableLayout& layout, TableRows& rows) {
  const SourceOptions& source = layout.source();
  DataSetInfo& info = rows.info;
  Sha256 digest;
  digest.add(info.format + "\n");
  for (const Column& column : info.columns) {
    digest.add(fmt::format("{}\n{}\n{}{}\n", column.name, column.missing, fmt::join(column.categories, "\n"),
                           column.dates ? "dates" : ""));
  }
  digest.add(fmt::format("{}\n{}\n", fmt::join(source.target, "\n"), fmt::join(info.class_names, "\n")));
  for (const Feature& feature : info.features) {
    if (feature.kind == Feature::Kind::label && !feature.classes.empty())
      digest.add(fmt::format("{}\n", fmt::join(feature.classes, "\n")));
  }
  add_features(digest, rows);
  digest.add(std::as_bytes(std::span(rows.targets)));
  digest.add(std::as_bytes(std::span(rows.labels)));
  digest.add(std::as_bytes(std::span(rows.weights)));
  info.digest = digest.hex();
}

std::vector<std::string> columns_of_numbers(const TableLayout& layout) {
  std::vector<std::string> columns;
  for (std::size_t i = 0; i < layout.source().target.size(); ++i) {
    if (layout.classes[i].empty()) columns.push_back(layout.source().target[i]);
  }
  return columns;
}

/// Rounds the targets to fp32, less the offsets of the training set, or their own if this is it.
void round_targets(const TableLayout& layout, const DataSetInfo* like, TableRows& rows) {
  const auto columns = columns_of_numbers(layout);
  if (columns.empty()) return;
  const auto add = [&rows](const std::vector<std::string>& warnings) {
    rows.info.warnings.insert(rows.info.warnings.end(), warnings.begin(), warnings.end());
  };
  std::vector<double> offsets(columns.size());
  if (like != nullptr) {
    const std::size_t each = std::max<std::size_t>(layout.window.ahead.size(), 1);  // numbers of a column
    const auto known = offsets_of(like->features, columns.size() * each);
    for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = known[i * each];
  } else if (layout.source().targets_centred) {
    offsets = target_offsets(rows.numbers, columns.size());
  }
  if (like == nullptr) add(constant_warnings(rows.numbers, columns));
  rows.targets = less_offsets(rows.numbers, offsets);
  set_offsets(rows.info.features, offsets);
  add(precision_warnings(rows.numbers, columns, offsets));
}

/// Of a time series whose rows are taken for successive, since no column of times is named.
void warn_of_order(TableRows& rows) {
  const auto& columns = rows.info.columns;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    for (std::size_t at = c + columns.size(); columns[c].dates && at < rows.cells.size(); at += columns.size()) {
      if (!(rows.cells[at] < rows.cells[at - columns.size()])) continue;
      rows.info.warnings.push_back(
          fmt::format("column '{}': its dates go back at {}, and windows reach over that; if it is the time, name it "
                      "under `time`, and what tells several series apart under `series`",
                      columns[c].name, rows.names[at / columns.size()]));
      break;
    }
  }
}

/// Of a training set.
void warn_of_values(const TableLayout& layout, TableRows& rows) {
  const TableCells table{rows.info.columns, rows.cells,   layout.source().target,
                         layout.classes,    rows.numbers, rows.labels};
  const auto add = [&](const std::vector<std::string>& warnings) {
    rows.info.warnings.insert(rows.info.warnings.end(), warnings.begin(), warnings.end());
  };
  if (layout.window.rows == 0) add(copy_warnings(table));  // the past of a target is a feature
  add(mark_warnings(table));
  add(outlier_warnings(table, [&](std::size_t row) { return rows.names[row]; }));
}

std::vector<TargetRange> table_ranges(const TableLayout& layout, const TableRows& rows) {
  auto ranges = target_ranges(rows.info.features, columns_of_numbers(layout), rows.numbers,
                              [&](std::size_t row) { return rows.names[row]; });
  for (TargetRange& range : ranges) {  // a window's sums are over all rows that it predicts
    if (!range.column.empty() || layout.window.rows == 0) continue;
    range.lowest *= layout.window.ahead.size();
    range.highest *= layout.window.ahead.size();
  }
  return ranges;
}

void add_warnings(const std::vector<TableFile>& files, const TableLayout& layout, const Decoder& decoder,
                  std::size_t samples, DataSetInfo& info) {
  auto& warnings = info.warnings;
  for (const TableFile& file : files) warnings.insert(warnings.end(), file.warnings.begin(), file.warnings.end());
  warnings.insert(warnings.end(), layout.warnings.begin(), layout.warnings.end());
  for (const auto& [column, count] : decoder.filled) {
    warnings.push_back(
        fmt::format("column '{}': {} {} missing, but none in the training set: taken for its mean, or for no category",
                    column, count, count == 1 ? "value is" : "values are"));
  }
  for (const auto& [column, count] : decoder.unknown) {
    warnings.push_back(fmt::format("column '{}': {} of a category that the training set lacks: taken for no category",
                                   column, count == 1 ? "1 value is" : fmt::format("{} values are", count)));
  }
  warn_of_skipped(samples, info);
}

}  // namespace

std::unique_ptr<DataSet> open_table(const SourceOptions& source, const IndexOptions& options) {
  const auto counter = make_byte_counter();
  std::vector<TableFile> files;
  std::size_t samples = 0;
  for (const auto& path : source.paths) {
    files.push_back(read_table(path, counter));
    samples += files.back().rows.size();
  }
  const TableLayout layout(files, source, options);
  TableRows rows;
  rows.info.format = "table";
  rows.info.source = describe(source.paths);
  std::optional<RowOrder> order;
  if (layout.window.rows > 0) order.emplace(layout.window, files);
  Decoder decoder(layout, rows, order ? &*order : nullptr);
  for (const TableFile& file : files) decoder.add(file);
  judge_bad_samples(source, decoder.faults, samples);
  if (rows.names.empty()) {
    throw Error(ExitCode::data, fmt::format("{}: no row is left; all {} are bad", rows.info.source, samples));
  }
  rows.info.skipped = decoder.faults;
  add_warnings(files, layout, decoder, samples, rows.info);
  describe_rows(layout, rows);
  if (!rows.weights.empty()) {
    require_weight(rows.weights, fmt::format("{}: column '{}'", rows.info.source, layout.source().weight));
  }
  if (order && !order->has_times()) warn_of_order(rows);
  if (options.like == nullptr) warn_of_values(layout, rows);
  round_targets(layout, options.like, rows);
  compute_digest(layout, rows);
  if (options.targets != nullptr) *options.targets = table_ranges(layout, rows);
  rows.numbers = {};
  if (!order) return std::make_unique<Table>(std::move(rows), counter);
  const auto gaps = order->warnings(rows.names);
  rows.info.warnings.insert(rows.info.warnings.end(), gaps.begin(), gaps.end());
  const auto table = std::make_shared<Table>(std::move(rows), counter);
  return std::make_unique<RowWindows>(table, layout.window, order->places(), order->has_times());
}

}  // namespace lockstep::data
