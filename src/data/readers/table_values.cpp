#include "data/readers/table_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/words.hpp"

namespace lockstep::data {
namespace {

/// pandas' own, and NAN.
constexpr std::array<std::string_view, 20> kMissing{
    "",     "NA",   "N/A", "n/a",  "NaN",  "nan",      "NAN",    "null",    "NULL",    "None",
    "<NA>", "#N/A", "#NA", "-NaN", "-nan", "#N/A N/A", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool are_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

/// Reads the parts of a date one after the other.
class DateParser {
 public:
  explicit DateParser(std::string_view text) : rest_(text) {}

  std::optional<double> days() {
    const int year = number(4);
    skip('-');
    const int month = number(2);
    skip('-');
    const int day = number(2);
    const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month(static_cast<unsigned>(month)),
                                           std::chrono::day(static_cast<unsigned>(day))};
    if (failed_ || !date.ok()) return std::nullopt;
    const double whole = std::chrono::sys_days(date).time_since_epoch().count();
    if (rest_.empty()) return whole;
    const double seconds = time();
    if (failed_ || !rest_.empty()) return std::nullopt;
    return whole + seconds / 86'400;
  }

 private:
  int number(std::size_t digits) {
    if (failed_ || rest_.size() < digits || !are_digits(rest_.substr(0, digits))) return fail();
    int value = 0;
    for (const char c : rest_.substr(0, digits)) value = value * 10 + (c - '0');
    rest_.remove_prefix(digits);
    return value;
  }
  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void skip(char c) {
    if (!take(c)) fail();
  }
  int fail() {
    failed_ = true;
    return 0;
  }

  double time() {
    if (!take('T') && !take(' ')) return fail();
    const int hour = number(2);
    skip(':');
    const int minute = number(2);
    int second = 0;
    double fraction = 0;
    if (take(':')) {
      second = number(2);
      if (take('.') || take(',')) fraction = this->fraction();
    }
    if (hour > 23 || minute > 59 || second > 60) return fail();
    return hour * 3600 + minute * 60 + second + fraction - zone();
  }

  double fraction() {
    std::size_t digits = 0;
    while (digits < rest_.size() && is_digit(rest_[digits])) ++digits;
    if (digits == 0) return fail();
    double value = 0, unit = 1;
    for (const char c : rest_.substr(0, digits)) value += (c - '0') * (unit /= 10);
    rest_.remove_prefix(digits);
    return value;
  }

  /// Seconds before UTC.
  double zone() {
    if (rest_.empty() || take('Z')) return 0;
    const bool ahead = take('+');
    if (!ahead && !take('-')) return fail();
    const int hours = number(2);
    take(':');
    const int minutes = rest_.empty() ? 0 : number(2);
    return (ahead ? 1 : -1) * (hours * 3600 + minutes * 60);
  }

  std::string_view rest_;
  bool failed_ = false;
};

/// Of "$1.50" "$", of "12 kg" " kg"; empty: there is nothing around a number, or what names have ("u12", "#3").
std::string around_number(std::string_view text) {
  const auto first = text.find_first_of("0123456789"), last = text.find_last_of("0123456789");
  if (first == std::string_view::npos) return "";
  const auto inner = text.substr(first, last - first + 1), before = text.substr(0, first),
             behind = text.substr(last + 1);
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const bool named = std::any_of(before.begin(), before.end(), is_letter) ||
                     before.find_first_of("#_-/.:(") != std::string_view::npos ||
                     (!behind.starts_with(' ') && std::any_of(behind.begin(), behind.end(), is_letter)) ||
                     behind.find_first_of("#_/:)") != std::string_view::npos;
  const bool number = inner.find_first_not_of("0123456789.,") == std::string_view::npos;
  return named || !number ? "" : std::string(before) + std::string(behind);
}

/// 1 234, 1'234.5, 1_234, 1.234.567 or 1,234.5: digits in groups of three, and at most one other mark.
bool groups_thousands(std::string_view text) {
  constexpr std::array<std::string_view, 7> kMarks{" ", "'", "_", ".", ",", "\u00a0", "\u202f"};
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  for (const std::string_view mark : kMarks) {
    const auto at = text.find(mark);
    if (at == std::string_view::npos || at > 3 || !are_digits(text.substr(0, at))) continue;
    std::string_view rest = text.substr(at);
    std::size_t groups = 0;
    for (; rest.starts_with(mark) && are_digits(rest.substr(mark.size(), 3)) && rest.size() >= mark.size() + 3;
         ++groups)
      rest.remove_prefix(mark.size() + 3);
    const bool is_mark = mark == "." || mark == ",";
    const bool fraction = !rest.empty() && (rest.front() == '.' || rest.front() == ',') && mark != rest.substr(0, 1) &&
                          are_digits(rest.substr(1));
    if (groups > (is_mark && !fraction ? 1 : 0) && (rest.empty() || fraction)) return true;
  }
  return false;
}

/// 20240131, 202401, 202401311230 or 20240131123000.
bool is_compact_date(std::string_view text) {
  if (!are_digits(text) || (text.size() != 6 && text.size() != 8 && text.size() != 12 && text.size() != 14))
    return false;
  const auto number = [&](std::size_t at, std::size_t digits) {
    unsigned value = 0;
    for (const char c : text.substr(std::min(at, text.size()), digits)) value = value * 10 + (c - '0');
    return value;
  };
  const auto year = number(0, 4);
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(year)), std::chrono::month(number(4, 2)),
                                         std::chrono::day(text.size() == 6 ? 1 : number(6, 2))};
  return year >= 1900 && year < 2100 && date.ok() && number(8, 2) < 24 && number(10, 2) < 60 && number(12, 2) < 60;
}

/// 10:30, 10:30:15.25, 9:05 PM.
bool is_time(std::string_view text) {
  for (const std::string_view half : {" AM", " PM", " am", " pm"}) {
    if (text.ends_with(half)) text.remove_suffix(half.size());
  }
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || colon > 2 || !are_digits(text.substr(0, colon))) return false;
  const auto minutes = text.substr(colon + 1, 2), rest = text.substr(std::min(colon + 3, text.size()));
  if (minutes.size() < 2 || !are_digits(minutes)) return false;
  const bool seconds = rest.size() >= 3 && rest[0] == ':' && are_digits(rest.substr(1, 2)) &&
                       (rest.size() == 3 || (rest[3] == '.' && are_digits(rest.substr(4))));
  return rest.empty() || seconds;
}

/// 1 Jan 2024, Jan 1, 2024, 01-Jan-24, January 2024: the name of a month among one to three numbers.
bool names_month(std::string_view text) {
  constexpr std::array<std::string_view, 12> kMonths{"jan", "feb", "mar", "apr", "may", "jun",
                                                     "jul", "aug", "sep", "oct", "nov", "dec"};
  std::size_t months = 0, numbers = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find_first_of(" -/,.", at), text.size());
    const auto word = lower_case(std::string(text.substr(at, end - at)));
    at = end + 1;
    if (word.empty()) continue;
    if (are_digits(word) && (word.size() <= 2 || word.size() == 4)) {
      ++numbers;
    } else if (word.size() >= 3 && word.size() <= 9 &&
               std::find(kMonths.begin(), kMonths.end(), word.substr(0, 3)) != kMonths.end()) {
      ++months;
    } else {
      return false;
    }
  }
  return months == 1 && numbers >= 1 && numbers <= 3;
}

/// 31/12/2024, 12/31/24, 31.12.2024, 2024-1-5, 2024-05, 20240131, 1 Jan 2024, each with a time behind it.
bool is_other_date(std::string_view text) {
  const auto mark = text.find('T', 1) != std::string_view::npos ? text.find('T', 1) : text.find(' ');
  if (mark != std::string_view::npos) {
    const auto time = text.substr(mark + 1);
    const bool digits = are_digits(time) && (time.size() == 4 || time.size() == 6);
    if ((is_time(time) || (text[mark] == 'T' && digits)) && is_other_date(text.substr(0, mark))) return true;
  }
  if (names_month(text)) return true;
  if (is_compact_date(text)) return true;
  const char separator = text.find('/') != std::string_view::npos   ? '/'
                         : text.find('-') != std::string_view::npos ? '-'
                                                                    : '.';
  std::vector<std::size_t> lengths;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(separator, begin), text.size());
    if (!are_digits(text.substr(begin, end - begin))) return false;
    lengths.push_back(end - begin);
    begin = end + 1;
  }
  if (separator == '-' && lengths == std::vector<std::size_t>{4, 2}) return true;
  if (lengths.size() != 3 || lengths[1] > 2) return false;
  const bool has_year = lengths[0] == 4 || lengths[2] == 4 || (separator == '/' && lengths[2] == 2);
  return has_year && std::min(lengths[0], lengths[2]) <= 2;
}

}  // namespace

std::string_view without_spaces(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool is_missing(std::string_view value) {
  const auto text = without_spaces(value);
  return std::find(kMissing.begin(), kMissing.end(), text) != kMissing.end();
}

std::vector<std::string> missing_marks() {
  return {kMissing.begin(), kMissing.end()};
}

std::string missing_target(std::string_view value) {
  const auto text = without_spaces(value);
  return text.empty() ? "expected a target, found nothing"
                      : fmt::format("expected a target, found '{}', which stands for a missing value", text);
}

std::optional<double> number_in(std::string_view value) {
  auto text = without_spaces(value);
  if (text.starts_with('+')) text.remove_prefix(1);  // which from_chars does not take
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || end != text.data() + text.size()) return std::nullopt;
  // Beyond the range of double from_chars gives no number; as for other programs, it is an infinite one, or 0.
  if (error == std::errc::result_out_of_range) return std::strtod(std::string(text).c_str(), nullptr);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

bool loses_digits(std::string_view value) {
  constexpr std::size_t kExact = std::numeric_limits<double>::digits10;
  auto text = without_spaces(value);
  if (text.starts_with('+')) text.remove_prefix(1);
  const bool negative = text.starts_with('-');
  const auto digits = text.substr(negative ? 1 : 0);
  return digits.size() > kExact && are_digits(digits) && digits[0] != '0' &&
         fmt::format("{:.0f}", number_in(text).value_or(0)) != text;
}

std::optional<double> boolean_in(std::string_view value) {
  const auto word = lower_case(std::string(without_spaces(value)));
  if (word != "true" && word != "false") return std::nullopt;
  return word == "true" ? 1 : 0;
}

bool has_decimal_comma(std::string_view value) {
  auto text = without_spaces(value);
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  const auto comma = text.find(',');
  return comma != std::string_view::npos && are_digits(text.substr(0, comma)) && are_digits(text.substr(comma + 1));
}

std::string written_otherwise(const std::vector<std::string>& texts) {
  if (texts.size() < 2) return "";
  if (std::all_of(texts.begin(), texts.end(), is_other_date)) return "dates";
  if (std::all_of(texts.begin(), texts.end(), is_time)) return "times of the day";
  if (std::any_of(texts.begin(), texts.end(), groups_thousands) &&
      std::all_of(texts.begin(), texts.end(),
                  [](const std::string& text) { return groups_thousands(text) || number_in(text); })) {
    return "numbers in groups of three digits";
  }
  const std::string around = around_number(texts.front());
  const auto is_alike = [&](const std::string& text) { return around_number(text) == around; };
  if (around.empty() || !std::all_of(texts.begin(), texts.end(), is_alike)) return "";
  return "numbers with '" + std::string(without_spaces(around)) + "'";
}

std::string typed_otherwise(const std::vector<std::string>& texts) {
  if (texts.size() < 2) return "";
  const auto all = [&](const auto& parse) {
    return std::all_of(texts.begin(), texts.end(), [&](const std::string& text) { return parse(text).has_value(); });
  };
  if (all(days_in)) return "dates";
  const bool has_point = std::any_of(texts.begin(), texts.end(),
                                     [](const std::string& text) { return text.find('.') != std::string::npos; });
  return has_point && all(number_in) ? "numbers" : "";
}

bool reads_as_date(double number) {
  return number >= 0 && number < 1e15 && number == std::floor(number) && is_compact_date(fmt::format("{:.0f}", number));
}

std::optional<double> days_in(std::string_view value) {
  constexpr std::size_t kShortest = 10;
  const auto text = without_spaces(value);
  if (text.size() < kShortest || text[4] != '-' || text[7] != '-') return std::nullopt;
  return DateParser(text).days();
}

std::string category_key(std::string_view value) {
  auto text = without_spaces(value);
  if (boolean_in(text)) return lower_case(std::string(text));
  std::string_view number = text;
  const bool negative = number.starts_with('-');
  if (negative || number.starts_with('+')) number.remove_prefix(1);
  const auto point = number.find('.');
  auto whole = number.substr(0, point);
  const bool leads_with_zero = whole.size() > 1 && whole[0] == '0';  // a zip code, a telephone number
  if (!are_digits(whole) || leads_with_zero) return std::string(text);
  if (point == std::string_view::npos) return (negative ? "-" : "") + std::string(whole);
  auto fraction = number.substr(point + 1);
  if (!fraction.empty() && !are_digits(fraction)) return std::string(text);
  while (fraction.ends_with('0')) fraction.remove_suffix(1);
  if (fraction.empty()) return (negative && whole != "0" ? "-" : "") + std::string(whole);
  return (negative ? "-" : "") + std::string(whole) + "." + std::string(fraction);
}

std::map<std::string, std::string> other_spellings(const std::vector<std::string>& categories) {
  std::map<std::string, std::string> others;
  for (const std::string& category : categories) {
    const std::string key = category_key(category);
    for (const auto& spelling :
         {key, key + ".0", std::string("True"), std::string("TRUE"), std::string("False"), std::string("FALSE")}) {
      if (spelling != category && category_key(spelling) == key) others.emplace(spelling, category);
    }
  }
  return others;
}

void Spellings::add(std::string_view value) {
  const auto [entry, is_new] = names_.try_emplace(category_key(value), without_spaces(value));
  if (!is_new && entry->second != without_spaces(value)) entry->second = entry->first;
}

std::vector<std::string> Spellings::names() const {
  std::vector<std::string> names;
  for (const auto& [key, name] : names_) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

std::string Spellings::name_of(std::string_view value) const {
  const auto found = names_.find(category_key(value));
  return found == names_.end() ? std::string(without_spaces(value)) : found->second;
}

}  // namespace lockstep::data
