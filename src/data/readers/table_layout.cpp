#include "data/readers/table_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/words.hpp"
#include "data/readers/common.hpp"
#include "data/readers/row_windows.hpp"
#include "data/sample_weights.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

constexpr std::size_t kMostCategories = 1000;
/// A column of at least so many categories of which most stand in one row only looks like an identifier.
constexpr std::size_t kFewestIdentifiers = 20;
/// So many numbers among other texts are hardly names.
constexpr std::size_t kFewestMixed = 10;

bool is_among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

TableLayout::TableLayout(const std::vector<TableFile>& files, const SourceOptions& source, const IndexOptions& options)
    : files_(files), source_(source) {
  const DataSetInfo* const like = options.like;
  if (source.target.empty() && like == nullptr) fail("expected a target, the column to predict; add `target`");
  std::vector<std::string> others;
  if (!source.weight.empty()) others.push_back(source.weight);
  source_.target = targets(like, others);
  choose_window(like);
  // What was is known when a window is: its own targets are features, unless `except` says otherwise.
  if (window.rows == 0) others.insert(others.begin(), source_.target.begin(), source_.target.end());
  const auto& header = files.front().header.fields;
  for (const auto& name : source_.features) {
    if (is_among(header, name)) named_.push_back(name);
  }
  auto no_features = others;
  for (const auto& name : row_names()) no_features.push_back(name);
  for (const auto& name : {window.series, window.time}) {
    if (!name.empty()) no_features.push_back(name);
  }
  source_.features = columns_like(files.front(), source_.features, no_features);
  source_.categorical = columns_like(files.front(), source_.categorical, others);
  if (like == nullptr) source_.except = columns_like(files.front(), source_.except, {});
  require_one_use();
  if (like != nullptr) {
    take(*like);
  } else {
    for (const auto& name : feature_names()) add_column(name);
    if (columns.empty()) fail("expected columns to predict from, found none with values" + first_fault());
    choose_target(options);
  }
}

std::int64_t TableLayout::elements() const {
  std::int64_t sum = 0;
  for (const Column& column : columns) sum += column.elements();
  return sum;
}

void TableLayout::fail(const std::string& what) const {
  throw Error(ExitCode::data, fmt::format("{}: {}", describe(source_.paths), what));
}

/// "; a.csv:2: 4 fields; the header has 3"; "": there is none.
std::string TableLayout::first_fault() const {
  for (const TableFile& file : files_) {
    for (const CsvRow& row : file.rows) {
      if (!row.fault.empty()) return fmt::format("; {}:{}: {}", file.path, row.line, row.fault);
    }
  }
  return "";
}

bool TableLayout::is_target(const std::string& name) const {
  return is_among(source_.target, name);
}

bool TableLayout::is_categorical(const std::string& name) const {
  return is_among(source_.categorical, name) || std::any_of(files_.begin(), files_.end(), [&](const TableFile& file) {
           return file.types.at(column_called(file, name)) == ColumnType::categories;
         });
}

/// The columns that a training set predicts, in its order; empty: not known.
std::vector<std::string> TableLayout::known_targets(const DataSetInfo& like) const {
  if (like.window.rows > 0) return like.window.targets;
  std::vector<std::string> known;
  for (std::size_t i = 1; i < like.features.size(); ++i) {
    const Feature& target = like.features[i];
    if (target.kind == Feature::Kind::weight) continue;
    if (!source_.targets_apart) return target.classes;
    known.push_back(target.name);
  }
  return known;
}

/// Patterns stand for the columns that they match, of a validation set for those of the training set, whose order
/// counts.
std::vector<std::string> TableLayout::targets(const DataSetInfo* like, const std::vector<std::string>& except) const {
  auto found = columns_like(files_.front(), source_.target, except);
  if (like == nullptr) return found;
  auto known = known_targets(*like);
  const bool same = std::is_permutation(found.begin(), found.end(), known.begin(), known.end());
  return same || (found != source_.target && !known.empty()) ? std::move(known) : found;
}

/// A training set's own, or the same as it has.
void TableLayout::choose_window(const DataSetInfo* like) {
  if (source_.window > 0) {
    window = {source_.window, source_.horizon, source_.target, source_.series, source_.time};
    if (window.ahead.empty()) window.ahead = {1};
  }
  if (like != nullptr) {
    if (window.rows > 0 && (window.rows != like->window.rows || window.ahead != like->window.ahead)) {
      fail(
          fmt::format("expected samples of {}, as the training set has, found {}; give both sources the same `window` "
                      "and `horizon`",
                      window_text(like->window), window_text(window)));
    }
    window = like->window;
  }
  for (const auto& [key, name] : {std::pair("series", &window.series), std::pair("time", &window.time)}) {
    if (name->empty()) continue;
    *name = files_.front().header.fields[readable_column(files_.front(), *name)];
    if (is_target(*name))
      fail(fmt::format("the column '{}' is `{}` and a target; name another column as one of them", *name, key));
  }
  if (!window.time.empty() && window.time == window.series) {
    fail(fmt::format("the column '{}' is `series` and `time`; name another column as one of them", window.time));
  }
}

void TableLayout::require_one_use() const {
  for (const auto& name : source_.features) {
    if (is_target(name) && window.rows == 0)
      fail(fmt::format("the column '{}' is a target and a feature; leave it out of `features`", name));
    if (name == source_.weight)
      fail(fmt::format("the column '{}' is a weight and a feature; leave it out of `features`", name));
    if (is_among(named_, name) && is_among(source_.except, name))
      fail(fmt::format("the column '{}' is named by `features` and by `except`; leave it out of one of them", name));
  }
  if (!source_.weight.empty() && is_target(source_.weight)) {
    fail(fmt::format("the column '{}' is a weight and a target; name another column as `weight`", source_.weight));
  }
}

std::vector<std::string> TableLayout::row_names() const {
  std::vector<std::string> names;
  for (const TableFile& file : files_) names.insert(names.end(), file.row_names.begin(), file.row_names.end());
  return names;
}

std::vector<std::string> TableLayout::feature_names() {
  const auto& all = source_.features.empty() ? files_.front().header.fields : source_.features;
  const auto of_programs = row_names();
  std::vector<std::string> names;
  for (const auto& name : all) {
    if ((is_target(name) && window.rows == 0) || name == source_.weight || is_among(source_.except, name)) continue;
    if ((name == window.series || name == window.time) && !is_among(named_, name)) continue;
    const auto& unreadable = files_.front().unreadable;
    if (const auto found = unreadable.find(name); found != unreadable.end() && !is_among(named_, name)) {
      warnings.push_back(fmt::format("column '{}': {}: it is not used", name, found->second));
      continue;
    }
    if (is_among(of_programs, name) && !is_among(named_, name)) {
      warnings.push_back(fmt::format(
          "column '{}': row names that pandas has written: it is not used; to use it, name it under `features`", name));
      continue;
    }
    names.push_back(name);
  }
  if (names.empty()) fail("expected columns beside the target, found none");
  return names;
}

/// Empty: there is none.
std::string TableLayout::reason_to_leave_out(const std::string& name, const ColumnValues& values) const {
  if (values.present() == 0) return "expected values, found none";
  if (values.are_numbers() && !is_categorical(name)) return "";
  if (values.are_dates() && !is_categorical(name)) return "";
  if (values.categories.size() <= kMostCategories) return "";
  return fmt::format("expected at most {} categories, found {}", kMostCategories, values.categories.size());
}

/// Of identifiers, and of numbers and dates that would silently be categories.
void TableLayout::warn_of_looks(const std::string& name, const ColumnValues& values, bool categorical) {
  const std::size_t rows = values.present(), categories = values.categories.size();
  const std::string type = values.typed_as_texts ? typed_otherwise(values.categories) : "";
  const std::string looks = categorical ? "" : !type.empty() ? type : written_otherwise(values.categories);
  if (!looks.empty()) {
    const std::string remedy = !type.empty()                 ? fmt::format("them as {} and not as texts", type)
                               : looks == "dates"            ? "them as 2024-05-01"
                               : looks == "times of the day" ? "hours as numbers"
                                                             : "the numbers alone";
    warnings.push_back(
        fmt::format("column '{}': looks like {}, such as '{}', which are read as categories; write {}, or add the "
                    "column to `categorical`",
                    name, looks, values.categories.front(), remedy));
  } else if (!categorical && !values.compact_date.empty()) {
    warnings.push_back(fmt::format(
        "column '{}': looks like dates, such as {}, which are read as numbers; write them as 2024-05-01, or "
        "add the column to `categorical`",
        name, values.compact_date));
  } else if (values.count_rows) {
    warnings.push_back(
        fmt::format("column '{}': looks like row numbers, {} whole numbers in a row; leave it out with "
                    "`except: [{}]`",
                    name, rows, name));
  } else if (categories >= kFewestIdentifiers && categories * 2 > rows) {
    warnings.push_back(
        fmt::format("column '{}': looks like an identifier, with {} categories in {} rows; leave it out "
                    "with `except: [{}]`",
                    name, categories, rows, name));
  }
}

/// Numbers such as 1,5 or 1,000 would silently be categories.
void TableLayout::require_points(const std::string& name, const ColumnValues& values) const {
  if (values.are_numbers() || values.are_dates() || values.decimal_comma.empty()) return;
  fail(
      fmt::format("column '{}': expected numbers with a point, or words, found '{}'; write the numbers with a point, "
                  "or add the column to `categorical`",
                  name, values.decimal_comma));
}

void TableLayout::add_column(const std::string& name) {
  const bool categorical = is_categorical(name);
  ColumnValues values = look_at_column(files_, name, categorical);
  const auto problem = reason_to_leave_out(name, values);
  if (!problem.empty() && (is_among(named_, name) || is_among(source_.categorical, name))) {
    fail(fmt::format("column '{}': {}; name the columns to use under `features`", name, problem));
  }
  if (!problem.empty()) {
    warnings.push_back(fmt::format("column '{}': {}: it is not used; `except: [{}]` says so", name, problem, name));
    return;
  }
  Column column{name, {}, values.missing > 0};
  const bool numbers = !categorical && values.are_numbers();
  if (numbers && !values.rounded.empty()) {
    warnings.push_back(
        fmt::format("column '{}': whole numbers such as {} have more digits than double holds and are rounded, so "
                    "different ones may become one; leave it out with `except: [{}]`, or add it to `categorical`",
                    name, values.rounded, name));
  }
  if (numbers && !values.padded.empty()) {
    warnings.push_back(fmt::format(
        "column '{0}': read as numbers, which do not keep the zeros that {1} begins with; if these are codes, "
        "add it to `categorical`",
        name, values.padded));
  }
  if (!numbers && !column.dates && !categorical && !values.typed_as_texts && values.numbers >= kFewestMixed) {
    warnings.push_back(fmt::format(
        "column '{}': {} of {} values are numbers, and all are read as categories, for most are not, such as "
        "'{}'; write what is missing as nothing, or add the column to `categorical`",
        name, values.numbers, values.present(), values.other));
  }
  column.dates = !categorical && values.are_dates();
  if (!categorical) require_points(name, values);
  if (!column.dates) warn_of_looks(name, values, categorical);
  if (!numbers && !column.dates) column.categories = std::move(values.categories);
  columns.push_back(std::move(column));
}

void TableLayout::warn_of_date_target(const std::string& name, const ColumnValues& values) {
  if (values.compact_date.empty()) return;
  warnings.push_back(
      fmt::format("column '{}': looks like dates, such as {}, which are read as numbers; write days since one of them, "
                  "or add the column to `categorical`",
                  name, values.compact_date));
}

void TableLayout::choose_target(const IndexOptions& options) {
  for (const auto& name : source_.target) {
    const bool categorical = is_categorical(name);
    ColumnValues values = look_at_column(files_, name, categorical);
    auto& of_target = classes.emplace_back();
    if (values.are_numbers() && !categorical) {
      warn_of_date_target(name, values);
      continue;
    }
    const bool together = source_.target.size() > 1 && !apart();
    if (together && values.are_booleans) continue;  // 1 and 0
    if (values.are_dates() && !categorical) {
      fail(fmt::format(
          "column '{}': expected a target of numbers or classes, found dates; write them as numbers, or add "
          "the column to `categorical`",
          name));
    }
    if (!categorical) require_points(name, values);
    if (together) {
      fail(
          fmt::format("column '{}': expected numbers, since there are {} targets, found texts; to predict both, give "
                      "each target a loss of its own",
                      name, source_.target.size()));
    }
    of_target = apart() ? std::move(values.categories) : classes_in_order(values.categories, source_, options);
  }
  for (std::size_t i = 0; i < classes.size() && window.ahead.size() > 1; ++i) {
    if (classes[i].empty()) continue;
    fail(
        fmt::format("column '{}': expected numbers, since {} rows ahead are predicted at once, found classes; name one "
                    "row in a list: `horizon: [{}]`",
                    source_.target[i], window.ahead.size(), window.ahead.back()));
  }
  if (!source_.classes.empty() && (apart() || classes[0].empty())) {
    fail("classes: expected one target, of categories, whose order they say, found another; leave it out");
  }
  for (const auto& name : source_.target) {
    if (apart() && (name == kTableFeatures || name == kSampleWeight)) {
      fail(
          fmt::format("column '{}': expected a target of another name, which samples have for something else; "
                      "rename the column",
                      name));
    }
  }
}

void TableLayout::take(const DataSetInfo& like) {
  columns = like.columns;
  for (const TableFile& file : files_) {
    for (const Column& column : columns) (void)readable_column(file, column.name);
  }
  if (columns.empty() || !takes_targets(like)) {
    fail("expected the columns and targets of the training set; give both sources the same settings");
  }
}

/// Whether the targets, if there are any, are those of another table.
bool TableLayout::takes_targets(const DataSetInfo& like) {
  if (source_.target.empty()) return true;
  for (std::size_t i = 0; apart() && i < source_.target.size(); ++i) {
    if (i + 1 >= like.features.size() || like.features[i + 1].name != source_.target[i]) return false;
    const Feature& target = like.features[i + 1];
    classes.push_back(target.kind == Feature::Kind::label ? target.classes : std::vector<std::string>());
  }
  if (apart()) return true;
  classes.resize(source_.target.size());
  classes[0] = like.class_names;
  if (window.rows > 0) return source_.target.size() == window.targets.size();
  const Shape target = like.features.size() < 2 ? Shape() : like.features[1].spec.shape;
  const auto known = like.features.size() < 2 ? std::vector<std::string>() : like.features[1].classes;
  if (!known.empty() && known != source_.target) {
    warnings.push_back(
        fmt::format("the target is {}, that of the training set {}", few_of(source_.target, 10), few_of(known, 10)));
  }
  return std::ssize(source_.target) == (target.empty() ? 1 : target[0]);
}

}  // namespace lockstep::data
