#include "data/readers/table_layout.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "data/readers/common.hpp"
#include "data/sample_weights.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

constexpr std::size_t kMostCategories = 1000;

bool is_among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

TableLayout::TableLayout(const std::vector<TableFile>& files, const SourceOptions& source, const DataSetInfo* like)
    : files_(files), source_(source) {
  if (source.target.empty() && like == nullptr) fail("expected a target, the column to predict; add `target`");
  std::vector<std::string> others;
  if (!source.weight.empty()) others.push_back(source.weight);
  source_.target = targets(like, others);
  others.insert(others.begin(), source_.target.begin(), source_.target.end());
  for (auto* names : {&source_.features, &source_.categorical}) *names = columns_like(files.front(), *names, others);
  require_one_use();
  if (like != nullptr) {
    take(*like);
  } else {
    for (const auto& name : feature_names()) columns.push_back(column_of(name));
    choose_target();
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

bool TableLayout::is_target(const std::string& name) const {
  return is_among(source_.target, name);
}

bool TableLayout::is_categorical(const std::string& name) const {
  return is_among(source_.categorical, name);
}

/// Patterns stand for the columns that they match, of a validation set for those of the training set.
std::vector<std::string> TableLayout::targets(const DataSetInfo* like, const std::vector<std::string>& except) const {
  auto found = columns_like(files_.front(), source_.target, except);
  if (like == nullptr || found == source_.target) return found;
  std::vector<std::string> known;
  for (std::size_t i = 1; i < like->features.size(); ++i) {
    const Feature& target = like->features[i];
    if (target.kind == Feature::Kind::weight) continue;
    if (!source_.targets_apart) return target.classes.empty() ? found : target.classes;
    known.push_back(target.name);
  }
  return known;
}

void TableLayout::require_one_use() const {
  for (const auto& name : source_.features) {
    if (is_target(name))
      fail(fmt::format("the column '{}' is a target and a feature; leave it out of `features`", name));
    if (name == source_.weight)
      fail(fmt::format("the column '{}' is a weight and a feature; leave it out of `features`", name));
  }
  if (!source_.weight.empty() && is_target(source_.weight)) {
    fail(fmt::format("the column '{}' is a weight and a target; name another column as `weight`", source_.weight));
  }
}

std::vector<std::string> TableLayout::feature_names() const {
  if (!source_.features.empty()) return source_.features;
  std::vector<std::string> names;
  for (const auto& name : files_.front().header.fields) {
    if (!is_target(name) && name != source_.weight) names.push_back(name);
  }
  if (names.empty()) fail("expected columns beside the target, found none");
  return names;
}

Column TableLayout::column_of(const std::string& name) const {
  ColumnValues values = look_at_column(files_, name);
  Column column{name, {}, values.missing > 0};
  if (values.numbers + values.texts == 0) {
    fail(fmt::format("column '{}': expected values, found none; name the columns to use under `features`", name));
  }
  if (values.are_numbers() && !is_categorical(name)) return column;
  if (values.categories.size() > kMostCategories) {
    fail(fmt::format("column '{}': expected at most {} categories, found {}; name the columns to use under `features`",
                     name, kMostCategories, values.categories.size()));
  }
  column.categories = std::move(values.categories);
  return column;
}

void TableLayout::choose_target() {
  for (const auto& name : source_.target) {
    ColumnValues values = look_at_column(files_, name);
    auto& of_target = classes.emplace_back();
    if (values.are_numbers() && !is_categorical(name)) continue;
    if (source_.target.size() > 1 && !apart()) {
      fail(
          fmt::format("column '{}': expected numbers, since there are {} targets, found texts; to predict both, give "
                      "each target a loss of its own",
                      name, source_.target.size()));
    }
    of_target = std::move(values.categories);
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
    for (const Column& column : columns) (void)column_called(file, column.name);
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
    classes.push_back(like.features[i + 1].classes);
  }
  if (apart()) return true;
  classes.resize(source_.target.size());
  classes[0] = like.class_names;
  const Shape target = like.features.size() < 2 ? Shape() : like.features[1].spec.shape;
  return std::ssize(source_.target) == (target.empty() ? 1 : target[0]);
}

}  // namespace lockstep::data
