// Rules for single values: number().at_least(0).below(1), text(), choice<Precision>(), boolean(), span(), bytes().
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/rule.hpp"

namespace lockstep::config {

struct NumberLimits {
  std::optional<double> low, high;
  bool low_open = false, high_open = false;           ///< the limit itself is excluded
  std::vector<std::pair<std::string, double>> words;  ///< words and the numbers that they stand for: `auto` for 0
  bool integral = false;
  std::string advice;  ///< added to the message if a value is out of range
};

/// Integers are read as doubles: these are exact up to 2^53, and no larger integer is accepted.
class NumberRule : public Rule {
 public:
  explicit NumberRule(NumberLimits limits) : limits_(std::move(limits)) {}
  void read(const Cursor& at, void* into) const override;
  Json write(const void* value) const override;
  Json schema() const override;
  std::string expected() const override;

 protected:
  virtual void store(void* into, double value) const = 0;
  virtual double load(const void* value) const = 0;

 private:
  bool fits(double value) const;
  NumberLimits limits_;
};

template <class N>
class NumberOf : public NumberRule {
 public:
  using NumberRule::NumberRule;

 private:
  void store(void* into, double value) const override { *static_cast<N*>(into) = static_cast<N>(value); }
  double load(const void* value) const override { return static_cast<double>(*static_cast<const N*>(value)); }
};

/// Converts to a rule for integers or for real numbers, depending on the member that it is bound to.
class Number {
 public:
  Number at_least(double limit) && { return limits_.low = limit, limits_.low_open = false, std::move(*this); }
  Number above(double limit) && { return limits_.low = limit, limits_.low_open = true, std::move(*this); }
  Number at_most(double limit) && { return limits_.high = limit, limits_.high_open = false, std::move(*this); }
  Number below(double limit) && { return limits_.high = limit, limits_.high_open = true, std::move(*this); }
  /// Adds a word that stands for a value: `auto` for 0.
  Number word(std::string word, double value) && {
    return limits_.words.emplace_back(std::move(word), value), std::move(*this);
  }
  Number advice(std::string text) && { return limits_.advice = std::move(text), std::move(*this); }
  template <class N>
  requires std::is_arithmetic_v<N>
  operator Is<N>() const {  // NOLINT: builders convert silently, that is their point
    NumberLimits limits = limits_;
    limits.integral = std::is_integral_v<N>;
    return {std::make_shared<NumberOf<N>>(limits)};
  }

 private:
  NumberLimits limits_;
};

[[nodiscard]] inline Number number() {
  return {};
}

class Text {
 public:
  Text one_of(std::vector<std::string> choices) && { return choices_ = std::move(choices), std::move(*this); }
  operator Is<std::string>() const;  // NOLINT

 private:
  std::vector<std::string> choices_;
};

[[nodiscard]] inline Text text() {
  return {};
}

/// A value of a one-byte enum, given by its index in `names`. Values listed in `refused` are known but not supported by
/// this version: they are rejected with `advice`.
[[nodiscard]] RulePtr choice_rule(std::span<const std::string_view> names, const std::vector<std::size_t>& refused,
                                  const std::string& advice);

/// One value of a closed set (lockstep/choices.hpp), by its name.
template <NamedChoice Choice>
requires(sizeof(Choice) == 1)
    [[nodiscard]] Is<Choice> choice(const std::vector<Choice>& refused = {}, const std::string& advice = "") {
  std::vector<std::size_t> indices;
  for (const Choice value : refused) indices.push_back(static_cast<std::size_t>(value));
  return {choice_rule(kNames<Choice>, indices, advice)};
}

[[nodiscard]] Is<bool> boolean();
[[nodiscard]] Is<Span> span(bool zero_allowed);  ///< "3 epochs", "200 steps"
[[nodiscard]] Is<std::int64_t> bytes();          ///< 1048576, "512 MiB"

/// A file, which must exist if the data are needed.
[[nodiscard]] Is<std::string> existing_file();
/// Reads a scalar that must be text; otherwise reports a problem and returns nullopt.
[[nodiscard]] std::optional<std::string> read_text(const Cursor& at, const std::string& expected);

}  // namespace lockstep::config
