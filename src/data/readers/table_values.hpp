// What the value of a table is, by one rule for all readers: nothing, a number, a date or the name of a category.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::data {

/// What a column's own file says of its values. `open`: nothing, they are judged by what they look like.
enum class ColumnType : std::int8_t { open, texts, categories };

/// The text without spaces and tabs at its ends, as values are compared.
[[nodiscard]] std::string_view without_spaces(std::string_view text);

/// Nothing, or what programs write for it: pandas' list (NA, N/A, NaN, null, None, ...).
[[nodiscard]] bool is_missing(std::string_view value);
/// These, without spaces.
[[nodiscard]] std::vector<std::string> missing_marks();

/// How else files often write categories, and which one each is: 2.0 of 2, True of true.
[[nodiscard]] std::map<std::string, std::string> other_spellings(const std::vector<std::string>& categories);

/// What to say of a missing value where a target is expected.
[[nodiscard]] std::string missing_target(std::string_view value);

/// nothing: the text is no number. Infinite ones are numbers; whoever needs finite ones says so.
[[nodiscard]] std::optional<double> number_in(std::string_view value);

/// A whole number of more digits than double holds, so that it is rounded.
[[nodiscard]] bool loses_digits(std::string_view value);

/// true and false are 1 and 0; nothing: the text is neither.
[[nodiscard]] std::optional<double> boolean_in(std::string_view value);

/// A number with a comma where the point should be: 1,5.
[[nodiscard]] bool has_decimal_comma(std::string_view value);

/// What texts are which all look like numbers or dates that are written otherwise: "numbers with '%'", "dates"; empty:
/// neither.
[[nodiscard]] std::string written_otherwise(const std::vector<std::string>& texts);

/// What texts are that their file might have as another type: "dates", or "numbers", some of them with a point; empty:
/// neither.
[[nodiscard]] std::string typed_otherwise(const std::vector<std::string>& texts);

/// Whether a number is a date without marks: 20240131, 202401, 202401311230, 20240131123000.
[[nodiscard]] bool reads_as_date(double number);

/// Days since 1970-01-01 of a date or a date with a time in ISO 8601: 2024-05-01, 2024-05-01 12:30:00.5,
/// 2024-05-01T12:30Z, 2024-05-01T12:30:00+02:00. A time without a zone is UTC. nothing: the text is no date.
[[nodiscard]] std::optional<double> days_in(std::string_view value);

/// What two spellings of a category have in common: "dog " and "dog", 1 and 1.0, True and true. 01 is not 1.
[[nodiscard]] std::string category_key(std::string_view value);

/// The names that a set has for its categories or classes. A value that is spelt in several ways has the name that
/// these have in common.
class Spellings {
 public:
  void add(std::string_view value);
  /// In order.
  std::vector<std::string> names() const;
  /// The name of a value; the value itself, without spaces, if the set has none for it.
  std::string name_of(std::string_view value) const;

 private:
  std::map<std::string, std::string, std::less<>> names_;
};

}  // namespace lockstep::data
