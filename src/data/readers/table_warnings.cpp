#include "data/readers/table_warnings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <type_traits>

namespace lockstep::data {

namespace {

constexpr std::size_t kFewestRows = 20;  ///< among fewer, two columns are easily alike by chance
constexpr std::size_t kMostValues = 1000;
constexpr double kLeastSpread = 0.01;  ///< of 98 % of the values, in standard deviations

/// A column, from the first row on.
template <class T>
struct Strided {
  std::span<const T> all;
  std::size_t columns, column;
  std::size_t size() const { return columns == 0 ? 0 : all.size() / columns; }
  double operator[](std::size_t row) const { return static_cast<double>(all[row * columns + column]); }
};

/// NaN is a value here, which sorts last.
struct Less {
  bool operator()(double a, double b) const { return std::isnan(b) ? !std::isnan(a) : a < b; }
};

template <class T>
std::size_t count_values(const Strided<T>& column, std::size_t most) {
  std::set<double, Less> values;
  for (std::size_t row = 0; row < column.size() && values.size() <= most; ++row) values.insert(column[row]);
  return values.size();
}

/// Whether each value of the feature goes with one of the target's, which are `values`, and the reverse.
template <class T>
bool are_paired(const Strided<double>& feature, const Strided<T>& target, std::size_t values) {
  std::map<double, double, Less> forward, back;
  for (std::size_t row = 0; row < target.size(); ++row) {
    const auto [to, is_new] = forward.try_emplace(feature[row], target[row]);
    const auto [from, is_other_new] = back.try_emplace(target[row], feature[row]);
    if (is_new != is_other_new || to->second != target[row] || forward.size() > values) return false;
  }
  return true;
}

/// Wherever the feature is not missing, which is in most rows.
bool are_equal(const Strided<double>& feature, const Strided<double>& target) {
  std::size_t present = 0;
  for (std::size_t row = 0; row < target.size(); ++row) {
    if (std::isnan(feature[row])) continue;
    if (feature[row] != target[row]) return false;
    ++present;
  }
  return present * 2 > target.size();
}

/// Written as nines alone, or the lowest of an integer type.
bool stands_for_missing(double value) {
  if (value == std::numeric_limits<std::int16_t>::min() || value == std::numeric_limits<std::int32_t>::min())
    return true;
  const std::string text = fmt::format("{}", std::abs(value));
  const auto nines = std::count(text.begin(), text.end(), '9');
  return nines >= 2 && nines + std::count(text.begin(), text.end(), '.') == std::ssize(text);
}

struct Bounds {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  std::size_t count = 0;
};

/// Of all numbers but one.
Bounds bounds_without(const Strided<double>& column, double excluded) {
  Bounds bounds;
  for (std::size_t row = 0; row < column.size(); ++row) {
    const double value = column[row];
    if (std::isnan(value) || value == excluded) continue;
    bounds.low = std::min(bounds.low, value);
    bounds.high = std::max(bounds.high, value);
    ++bounds.count;
  }
  return bounds;
}

/// "12 values are -999, ..."; empty: there is no mark.
std::string mark_in(const Strided<double>& column) {
  const Bounds all = bounds_without(column, std::numeric_limits<double>::quiet_NaN());
  for (const double mark : {all.low, all.high}) {
    if (all.count == 0 || !stands_for_missing(mark)) continue;
    const Bounds others = bounds_without(column, mark);
    const double distance = mark < others.low ? others.low - mark : mark - others.high;
    if (all.count - others.count < 2 || others.low >= others.high || distance <= others.high - others.low) continue;
    return fmt::format(
        "{} values are {}, far from the others, which are between {} and {}: if that stands for missing "
        "values, leave them empty",
        all.count - others.count, mark, others.low, others.high);
  }
  return "";
}

/// `most`: of more values, which hardly repeat, columns pair without being copies.
template <class T>
void add_copies(const TableCells& table, const Strided<T>& target, const std::string& name, std::size_t most,
                std::vector<std::string>& warnings) {
  const std::size_t values = count_values(target, most);
  if (target.size() < kFewestRows || values < 2) return;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const Strided<double> feature{table.cells, table.columns.size(), c};
    const std::string& column = table.columns[c].name;
    bool equal = false;
    if constexpr (std::is_same_v<T, double>) equal = table.columns[c].categories.empty() && are_equal(feature, target);
    if (!equal && (values > most || !are_paired(feature, target, values))) continue;
    warnings.push_back(
        fmt::format("column '{}': {} the target '{}', so a model needs nothing else; leave it out with "
                    "`except: [{}]`",
                    column, equal ? "equals" : "has one value for each value of", name, column));
  }
}

std::size_t number_targets(const TableCells& table) {
  return std::count_if(table.classes.begin(), table.classes.end(), [](const auto& classes) { return classes.empty(); });
}

/// "most of its values are between ..."; empty: no value is far from the others.
std::string outlier_in(const Strided<double>& column, const std::function<std::string(std::size_t)>& place) {
  std::vector<double> values;
  for (std::size_t row = 0; row < column.size(); ++row) {
    if (!std::isnan(column[row])) values.push_back(column[row]);
  }
  const std::size_t outside = std::max<std::size_t>(1, values.size() / 100);  // on either side
  if (values.size() < kFewestRows) return "";
  const double mean = std::accumulate(values.begin(), values.end(), 0.0,
                                      [n = values.size()](double sum, double value) { return sum + value / n; });
  double variance = 0;
  for (const double value : values) variance += (value - mean) * (value - mean) / values.size();
  const auto inner = values.begin() + outside, last = values.end() - 1 - outside;
  std::nth_element(values.begin(), inner, values.end());
  std::nth_element(inner + 1, last, values.end());
  const double low = *inner, high = *last;
  if (low == high || high - low > kLeastSpread * std::sqrt(variance) || !mark_in(column).empty()) return "";
  const double least = *std::min_element(values.begin(), inner), most = *std::max_element(last + 1, values.end());
  const double extreme = low - least > most - high ? least : most;
  std::size_t row = 0;
  while (column[row] != extreme) ++row;
  return fmt::format(
      "most of its values are between {} and {}, and one is {} ({}): normalized, the others are nearly alike; correct "
      "it, leave it empty, or take the logarithm of the column",
      low, high, extreme, place(row));
}

/// What `judge` says of each column of numbers, features and targets.
template <class Judge>
std::vector<std::string> judge_numbers(const TableCells& table, const Judge& judge) {
  std::vector<std::string> warnings;
  const auto add = [&](const std::string& name, const Strided<double>& values) {
    if (const auto found = judge(values); !found.empty())
      warnings.push_back(fmt::format("column '{}': {}", name, found));
  };
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const Column& column = table.columns[c];
    if (column.categories.empty() && !column.dates) add(column.name, {table.cells, table.columns.size(), c});
  }
  const std::size_t of_numbers = number_targets(table);
  std::size_t number = 0;
  for (std::size_t t = 0; t < table.targets.size(); ++t) {
    if (table.classes[t].empty()) add(table.targets[t], {table.numbers, of_numbers, number++});
  }
  return warnings;
}

}  // namespace

std::vector<std::string> copy_warnings(const TableCells& table) {
  std::vector<std::string> warnings;
  const std::size_t of_numbers = number_targets(table), of_classes = table.targets.size() - of_numbers;
  std::size_t number = 0, label = 0;
  for (std::size_t t = 0; t < table.targets.size(); ++t) {
    if (!table.classes[t].empty()) {
      const Strided<std::int32_t> target{table.labels, of_classes, label++};
      add_copies(table, target, table.targets[t], target.size() / 2, warnings);
    } else {
      const Strided<double> target{table.numbers, of_numbers, number++};
      add_copies(table, target, table.targets[t], std::min(target.size() / 4, kMostValues), warnings);
    }
  }
  return warnings;
}

std::vector<std::string> mark_warnings(const TableCells& table) {
  return judge_numbers(table, mark_in);
}

std::vector<std::string> outlier_warnings(const TableCells& table,
                                          const std::function<std::string(std::size_t)>& place) {
  return judge_numbers(table, [&](const Strided<double>& column) { return outlier_in(column, place); });
}

}  // namespace lockstep::data
