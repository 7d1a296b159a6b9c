// A CSV with a header row, or a Parquet file, whose columns are what is predicted and what it is predicted from.
// Columns of numbers and of categories become one feature, `features`, of floats; the target, `label`, is a number,
// several numbers, or a class. Where a job has several losses, several targets are a feature each, by the names of
// their columns.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>

#include "core/digest.hpp"
#include "data/readers/common.hpp"
#include "data/readers/file.hpp"
#include "data/readers/prepare.hpp"
#include "data/readers/readers.hpp"
#include "data/readers/table_layout.hpp"
#include "data/sample_weights.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

/// All rows, decoded.
struct TableRows {
  DataSetInfo info;
  std::vector<std::string> names;    ///< by row: "houses.csv:17"
  std::vector<float> features;       ///< [rows, elements]
  std::vector<float> targets;        ///< [rows, targets that are numbers]
  std::vector<std::int32_t> labels;  ///< [rows, targets that are classes]
  std::vector<float> weights;        ///< [rows]; empty: none
};

class Table final : public DataSet {
 public:
  Table(TableRows rows, ByteCounter counter) : rows_(std::move(rows)), counter_(std::move(counter)) {}

  [[nodiscard]] const DataSetInfo& info() const override { return rows_.info; }
  [[nodiscard]] std::int64_t size() const override { return std::ssize(rows_.names); }
  [[nodiscard]] std::uint64_t bytes_read() const override { return *counter_; }
  [[nodiscard]] std::string name(std::int64_t id) const override {
    return rows_.names.at(static_cast<std::size_t>(id));
  }
  [[nodiscard]] std::int64_t label(std::int64_t id) const override {
    const bool has_classes = !rows_.info.class_names.empty() && !rows_.labels.empty();
    return has_classes ? rows_.labels.at(static_cast<std::size_t>(id)) : -1;
  }

  void read(std::int64_t id, Sample& out) const override {
    LOCKSTEP_CHECK(id >= 0 && id < size(), "the number of a row");
    const auto& features = rows_.info.features;
    prepare_names(out, features);
    for (std::size_t i = 0; i < features.size(); ++i) prepare(out[i].tensor, features[i].spec);
    copy(rows_.features, id * out[0].tensor.elements(), out[0].tensor);
    std::int64_t number = id * (std::ssize(rows_.targets) / size()), label = id * (std::ssize(rows_.labels) / size());
    for (std::size_t i = 1; i < features.size(); ++i) {
      Tensor& tensor = out[i].tensor;
      if (features[i].kind == Feature::Kind::weight) {
        copy(rows_.weights, id, tensor);
      } else if (features[i].kind == Feature::Kind::label) {
        set_label(tensor, rows_.labels[static_cast<std::size_t>(label++)]);
      } else {
        copy(rows_.targets, number, tensor);
        number += tensor.elements();
      }
    }
  }

 private:
  static void copy(const std::vector<float>& from, std::int64_t first, Tensor& to) {
    const auto out = to.as<float>();
    std::copy_n(from.begin() + first, out.size(), out.begin());
  }

  TableRows rows_;
  ByteCounter counter_;
};

/// Decodes rows, and notes what is wrong with them.
class Decoder {
 public:
  Decoder(const TableLayout& layout, TableRows& rows) : layout_(layout), source_(layout.source()), rows_(rows) {}

  void add(const TableFile& file) {
    std::vector<std::size_t> features, targets;
    for (const Column& column : layout_.columns) features.push_back(column_called(file, column.name));
    for (const auto& name : source_.target) targets.push_back(column_called(file, name));
    const bool has_weights = !source_.weight.empty() && !targets.empty();
    const std::size_t of_weight = has_weights ? column_called(file, source_.weight) : 0;
    for (std::size_t row = 0; row < file.rows.size(); ++row) {
      fault_.clear();
      values_.clear();
      const auto& fields = file.rows[row].fields;
      for (std::size_t i = 0; i < features.size(); ++i) {
        add_feature(file, row, layout_.columns[i], fields[features[i]]);
      }
      std::vector<float> wanted;
      std::vector<std::int32_t> labels;
      for (std::size_t i = 0; i < targets.size(); ++i) {
        const std::string& value = fields[targets[i]];
        if (!layout_.classes[i].empty()) {
          labels.push_back(class_in(file, row, source_.target[i], value, layout_.classes[i]));
        } else {
          wanted.push_back(is_missing(value) ? missing_target(file, row, source_.target[i])
                                             : number(file, row, source_.target[i], value));
        }
      }
      const float weight = has_weights ? weight_in(file, row, fields[of_weight]) : 1;
      if (!fault_.empty()) {
        faults.push_back(fault_);
        continue;
      }
      rows_.names.push_back(fmt::format("{}:{}", file.path, file.rows[row].line));
      rows_.features.insert(rows_.features.end(), values_.begin(), values_.end());
      rows_.targets.insert(rows_.targets.end(), wanted.begin(), wanted.end());
      rows_.labels.insert(rows_.labels.end(), labels.begin(), labels.end());
      if (has_weights) rows_.weights.push_back(weight);
    }
  }

  std::vector<std::string> faults;
  std::map<std::string, std::int64_t> filled;  ///< by column: values that are missing here, but not in training

 private:
  /// Of a row the first one counts.
  void note(const TableFile& file, std::size_t row, const std::string& column, const std::string& what) {
    if (fault_.empty()) fault_ = fmt::format("{}: {}", file.place(row, column), what);
  }

  float number(const TableFile& file, std::size_t row, const std::string& column, const std::string& value) {
    const auto found = number_in(value);
    if (!found) {
      note(file, row, column,
           fmt::format("expected a number, as in the other rows, found '{}'; or add the column to `categorical`",
                       value));
      return 0;
    }
    const auto rounded = static_cast<float>(*found);
    if (!std::isfinite(rounded))
      note(file, row, column, fmt::format("expected a number that fp32 can hold, found '{}'", value));
    return rounded;
  }

  float missing_target(const TableFile& file, std::size_t row, const std::string& column) {
    note(file, row, column, "expected a target, found nothing");
    return 0;
  }

  float weight_in(const TableFile& file, std::size_t row, const std::string& value) {
    const auto weight = parse_weight(value);
    if (!weight) {
      note(file, row, source_.weight, fmt::format("expected a weight, a number of at least 0, found '{}'", value));
    }
    return weight.value_or(0);
  }

  std::int32_t class_in(const TableFile& file, std::size_t row, const std::string& column, const std::string& value,
                        const std::vector<std::string>& classes) {
    if (is_missing(value)) return static_cast<std::int32_t>(missing_target(file, row, column));
    const std::int64_t position = position_in(classes, value);
    if (position < 0) note(file, row, column, unknown(value, classes));
    return static_cast<std::int32_t>(std::max<std::int64_t>(position, 0));
  }

  void add_feature(const TableFile& file, std::size_t row, const Column& column, const std::string& value) {
    const bool missing = is_missing(value);
    if (missing && !column.missing) ++filled[column.name];
    if (column.categories.empty()) {
      values_.push_back(missing ? std::numeric_limits<float>::quiet_NaN() : number(file, row, column.name, value));
    } else {
      const std::size_t first = values_.size();
      values_.resize(first + column.categories.size());
      const std::int64_t position = missing ? -1 : position_in(column.categories, value);
      if (position >= 0) values_[first + static_cast<std::size_t>(position)] = 1;
      if (position < 0 && !missing) note(file, row, column.name, unknown(value, column.categories));
    }
    if (column.missing) values_.push_back(missing ? 1.0F : 0.0F);
  }

  /// -1: it is not there.
  static std::int64_t position_in(const std::vector<std::string>& words, const std::string& value) {
    const auto found = std::find(words.begin(), words.end(), without_spaces(value));
    return found == words.end() ? -1 : found - words.begin();
  }

  static std::string unknown(const std::string& value, const std::vector<std::string>& known) {
    constexpr std::size_t kNamed = 10;
    const auto end = known.begin() + static_cast<std::ptrdiff_t>(std::min(known.size(), kNamed));
    return fmt::format("expected one of {}{}, as in the training set, found '{}'", fmt::join(known.begin(), end, ", "),
                       known.size() > kNamed ? ", ..." : "", value);
  }

  const TableLayout& layout_;
  const SourceOptions& source_;
  TableRows& rows_;
  std::string fault_;
  std::vector<float> values_;
};

void describe_rows(const TableLayout& layout, TableRows& rows) {
  const SourceOptions& source = layout.source();
  DataSetInfo& info = rows.info;
  info.columns = layout.columns;
  info.features = {{kTableFeatures, Feature::Kind::columns, {DType::f32, {layout.elements()}}}};
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
    for (const auto label : rows.labels) ++info.class_counts[static_cast<std::size_t>(label)];
  } else {
    Feature& label = info.features.emplace_back(Feature{"label", Feature::Kind::tensor, {DType::f32, {}}, {}});
    if (source.target.size() > 1) label.spec.shape = {std::ssize(source.target)};
    label.classes = source.target;
  }
  if (!rows.weights.empty()) info.features.push_back(weight_feature());
  Sha256 digest;
  digest.add(info.format + "\n");
  for (const Column& column : info.columns) {
    digest.add(fmt::format("{}\n{}\n{}\n", column.name, column.missing, fmt::join(column.categories, "\n")));
  }
  digest.add(fmt::format("{}\n{}\n", fmt::join(source.target, "\n"), fmt::join(info.class_names, "\n")));
  for (const Feature& feature : info.features) {
    if (feature.kind == Feature::Kind::label && !feature.classes.empty())
      digest.add(fmt::format("{}\n", fmt::join(feature.classes, "\n")));
  }
  digest.add(std::as_bytes(std::span(rows.features)));
  digest.add(std::as_bytes(std::span(rows.targets)));
  digest.add(std::as_bytes(std::span(rows.labels)));
  digest.add(std::as_bytes(std::span(rows.weights)));
  info.digest = digest.hex();
}

std::vector<TargetRange> table_ranges(const TableLayout& layout, const TableRows& rows) {
  std::vector<std::string> columns;
  for (std::size_t i = 0; i < layout.source().target.size(); ++i) {
    if (layout.classes[i].empty()) columns.push_back(layout.source().target[i]);
  }
  return target_ranges(rows.info.features, columns, rows.targets, [&](std::size_t row) { return rows.names[row]; });
}

}  // namespace

std::unique_ptr<DataSet> open_table(const SourceOptions& source, const IndexOptions& options) {
  const auto counter = make_byte_counter();
  std::vector<TableFile> files;
  std::size_t samples = 0;
  for (const auto& path : source.paths) {
    const auto bytes = read_whole(File(path, counter));
    files.push_back(parse_table({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path));
    samples += files.back().rows.size();
  }
  const TableLayout layout(files, source, options.like);
  TableRows rows;
  rows.info.format = "table";
  rows.info.source = describe(source.paths);
  Decoder decoder(layout, rows);
  for (const TableFile& file : files) decoder.add(file);
  judge_bad_samples(source, decoder.faults, samples);
  if (rows.names.empty()) {
    throw Error(ExitCode::data, fmt::format("{}: no row is left; all {} are bad", rows.info.source, samples));
  }
  rows.info.skipped = decoder.faults;
  for (const auto& [column, count] : decoder.filled) {
    rows.info.warnings.push_back(
        fmt::format("column '{}': {} {} missing, but none in the training set: taken for its mean, or for no category",
                    column, count, count == 1 ? "value is" : "values are"));
  }
  describe_rows(layout, rows);
  if (options.targets != nullptr) *options.targets = table_ranges(layout, rows);
  return std::make_unique<Table>(std::move(rows), counter);
}

}  // namespace lockstep::data
