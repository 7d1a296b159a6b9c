#include "lockstep/attributes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "lockstep/error.hpp"

namespace lockstep {

namespace {

const char* kind_name(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::boolean:
      return "true or false";
    case AttributeKind::integer:
      return "an integer";
    case AttributeKind::number:
      return "a number";
    case AttributeKind::text:
      return "a text";
    case AttributeKind::integers:
      return "an integer or a list of integers";
    case AttributeKind::spans:
      return "a list of spans";
    case AttributeKind::span:
      return "a span";
  }
  return "?";
}

bool fits(const AttributeSpec& spec, const Attribute& value) {
  switch (spec.kind) {
    case AttributeKind::boolean:
      return std::holds_alternative<bool>(value);
    case AttributeKind::integer:
      return std::holds_alternative<std::int64_t>(value);
    case AttributeKind::number:
      return std::holds_alternative<double>(value) || std::holds_alternative<std::int64_t>(value);
    case AttributeKind::text:
      return std::holds_alternative<std::string>(value);
    case AttributeKind::integers:
      return std::holds_alternative<std::int64_t>(value) || std::holds_alternative<std::vector<std::int64_t>>(value) ||
             (std::holds_alternative<std::string>(value) && !spec.choices.empty());
    case AttributeKind::spans:
      return std::holds_alternative<std::vector<Span>>(value);
    case AttributeKind::span:
      return std::holds_alternative<Span>(value);
  }
  return false;
}

std::vector<double> numbers(const Attribute& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return {static_cast<double>(*integer)};
  if (const auto* number = std::get_if<double>(&value)) return {*number};
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) return {list->begin(), list->end()};
  return {};
}

void check_value(const AttributeSpec& spec, const Attribute& value, const std::string& what) {
  if (!fits(spec, value)) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: {}: expected {}, found {}", what, spec.name, kind_name(spec.kind), to_string(value)));
  }
  for (const double number : numbers(value)) {
    const bool above = spec.maximum && (number > *spec.maximum || (spec.below_maximum && number == *spec.maximum));
    const bool below = spec.minimum && (number < *spec.minimum || (spec.above_minimum && number == *spec.minimum));
    if (below || above || std::isnan(number)) {
      throw Error(ExitCode::configuration, fmt::format("{}: {}: {} is out of range", what, spec.name, number));
    }
  }
  if (const auto* text = std::get_if<std::string>(&value); text != nullptr && !spec.choices.empty()) {
    if (std::find(spec.choices.begin(), spec.choices.end(), *text) == spec.choices.end()) {
      throw Error(ExitCode::configuration, fmt::format("{}: {}: expected one of {}, found '{}'", what, spec.name,
                                                       fmt::join(spec.choices, ", "), *text));
    }
  }
}

}  // namespace

std::int64_t Span::steps(std::int64_t steps_per_epoch) const {
  return std::llround(epochs ? amount * steps_per_epoch : amount);
}

const Attribute& Attributes::at(const std::string& name) const {
  const auto found = values_.find(name);
  LOCKSTEP_CHECK(found != values_.end(), "no attribute '" + name + "'");
  return found->second;
}

double Attributes::number(const std::string& name) const {
  const Attribute& value = at(name);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  return std::get<double>(value);
}

std::vector<std::int64_t> Attributes::integers(const std::string& name) const {
  const Attribute& value = at(name);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return {*integer};
  return std::get<std::vector<std::int64_t>>(value);
}

const std::vector<Span>& Attributes::spans(const std::string& name) const {
  return std::get<std::vector<Span>>(at(name));
}

Attributes complete(const std::vector<AttributeSpec>& specs, Attributes given, const std::string& what,
                    const std::vector<AttributeCheck>& checks) {
  for (const auto& given_one : given.all()) {
    const auto& name = given_one.first;  // clang 14 cannot capture a structured binding
    const auto& value = given_one.second;
    const auto spec = std::find_if(specs.begin(), specs.end(), [&](const auto& s) { return s.name == name; });
    if (spec == specs.end()) {
      throw Error(ExitCode::configuration, fmt::format("{}: it has no attribute '{}'", what, name));
    }
    check_value(*spec, value, what);
  }
  for (const auto& spec : specs) {
    if (given.has(spec.name) || spec.optional) continue;
    if (!spec.default_value) throw Error(ExitCode::configuration, fmt::format("{}: {} is missing", what, spec.name));
    given.set(spec.name, *spec.default_value);
  }
  for (const auto& check : checks) {
    if (const std::string problem = check.problem(given); !problem.empty()) {
      throw Error(ExitCode::configuration, fmt::format("{}: {}: {}", what, check.attributes.front(), problem));
    }
  }
  return given;
}

std::string to_string(const Span& span) {
  // Without an exponent, which a span in a job file may not have.
  std::array<char, 400> digits{};
  const auto end = std::to_chars(digits.begin(), digits.end(), span.amount, std::chars_format::fixed).ptr;
  return fmt::format("{} {}{}", std::string_view(digits.data(), end), span.epochs ? "epoch" : "step",
                     span.amount == 1 ? "" : "s");
}

std::string to_string(const Attribute& value) {
  struct Printer {
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(std::int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(double v) const { return fmt::format("{}", v); }
    std::string operator()(const std::string& v) const { return v; }
    std::string operator()(const std::vector<std::int64_t>& v) const { return fmt::format("[{}]", fmt::join(v, ", ")); }
    std::string operator()(const std::vector<Span>& v) const {
      std::vector<std::string> texts;
      for (const Span& span : v) texts.push_back(to_string(span));
      return fmt::format("[{}]", fmt::join(texts, ", "));
    }
    std::string operator()(const Span& v) const { return to_string(v); }
  };
  return std::visit(Printer{}, value);
}

}  // namespace lockstep
