#include "config/scalar_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "config/advice.hpp"
#include "config/files.hpp"
#include "config/renamed.hpp"
#include "core/nearest.hpp"

namespace lockstep::config {
namespace {

constexpr double kMaxInteger = 9007199254740991;  // 2^53 - 1: Helm represents numbers as doubles

/// "1", "0.5", "1e-08"
std::string show(double value) {
  return std::abs(value) < 1e16 && value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{}", value);
}

std::string limits_text(const NumberLimits& limits) {
  const bool low = limits.low.has_value(), high = limits.high.has_value();
  if (low && high && !limits.low_open && !limits.high_open) {
    return fmt::format(" from {} to {}", show(*limits.low), show(*limits.high));
  }
  std::string text;
  if (low) text += (limits.low_open ? " above " : " of at least ") + show(*limits.low);
  if (low && high) text += " and";
  if (high) text += (limits.high_open ? " below " : " at most ") + show(*limits.high);
  return text;
}

class TextRule : public Rule {
 public:
  explicit TextRule(std::vector<std::string> choices) : choices_(std::move(choices)) {}

  void read(const Cursor& at, void* into) const override {
    const auto found = read_text(at, expected());
    if (!found) return;
    if (!choices_.empty() && std::find(choices_.begin(), choices_.end(), *found) == choices_.end()) {
      return at.expected(expected(), did_you_mean(*found, choices_));
    }
    if (found->empty()) return at.expected("text", ", which is empty");
    *static_cast<std::string*>(into) = *found;
  }
  Json write(const void* value) const override {
    const auto& text = *static_cast<const std::string*>(value);
    return text.empty() ? Json() : Json(text);
  }
  Json schema() const override {
    Json json = {{"type", "string"}};
    if (choices_.empty()) {
      json["minLength"] = 1;
    } else {
      json["enum"] = choices_;
    }
    return json;
  }
  std::string expected() const override { return choices_.empty() ? "text" : config::one_of(choices_); }

 private:
  std::vector<std::string> choices_;
};

class ChoiceRule : public Rule {
 public:
  ChoiceRule(std::span<const std::string_view> names, std::vector<std::string> offered, std::string advice)
      : names_(names), offered_(std::move(offered)), advice_(std::move(advice)) {}

  void read(const Cursor& at, void* into) const override {
    if (at.node().is(YamlNode::Kind::scalar)) {
      const std::string now = new_value(at.path(), at.node().text);
      if (!now.empty()) return at.expected(expected(), fmt::format(", the old name of '{}'", now));
    }
    const auto found = read_text(at, expected());
    if (!found) return;
    const auto name = std::find(names_.begin(), names_.end(), *found);
    if (std::find(offered_.begin(), offered_.end(), *found) == offered_.end()) {
      return at.expected(expected(), name != names_.end() ? "; " + advice_ : did_you_mean(*found, offered_));
    }
    *static_cast<std::uint8_t*>(into) = name - names_.begin();
  }
  Json write(const void* value) const override { return names_[*static_cast<const std::uint8_t*>(value)]; }
  Json schema() const override { return {{"type", "string"}, {"enum", offered_}}; }
  std::string expected() const override { return config::one_of(offered_); }

 private:
  std::span<const std::string_view> names_;
  std::vector<std::string> offered_;
  std::string advice_;
};

class BooleanRule : public Rule {
 public:
  void read(const Cursor& at, void* into) const override {
    if (!at.node().is(YamlNode::Kind::scalar) || scalar_type(at.node()) != ScalarType::boolean)
      return at.expected(expected());
    *static_cast<bool*>(into) = at.node().text == "true";
  }
  Json write(const void* value) const override { return *static_cast<const bool*>(value); }
  Json schema() const override { return {{"type", "boolean"}}; }
  std::string expected() const override { return "true or false"; }
};

class FileRule : public Rule {
 public:
  void read(const Cursor& at, void* into) const override {
    const auto found = read_text(at, expected());
    if (!found) return;
    const std::string path = resolve(at, *found);
    if (at.session().need_data && !file_exists(path)) {
      return at.problem(fmt::format("expected a file, found nothing at '{}'; check the path", *found));
    }
    *static_cast<std::string*>(into) = path;
  }
  Json write(const void* value) const override {
    const auto& text = *static_cast<const std::string*>(value);
    return text.empty() ? Json() : Json(text);
  }
  Json schema() const override { return {{"type", "string"}, {"minLength", 1}}; }
  std::string expected() const override { return "the path of a file"; }
};

}  // namespace

std::optional<std::string> read_text(const Cursor& at, const std::string& expected) {
  const YamlNode& node = at.node();
  if (!node.is(YamlNode::Kind::scalar)) {
    at.expected(expected);
  } else if (scalar_type(node) != ScalarType::text) {
    const std::string quoted = node.mark.command_line
                                   ? fmt::format("; if it is text, quote it twice: '\"{}\"'", node.text)
                                   : "; put it in quotes if it is text";
    at.expected(expected, expected == "text" ? quoted : "");
  } else {
    return node.text;
  }
  return std::nullopt;
}

void NumberRule::read(const Cursor& at, void* into) const {
  const YamlNode& node = at.node();
  if (node.is(YamlNode::Kind::scalar)) {
    for (const auto& [word, value] : limits_.words) {
      if (node.text == word) return store(into, value);
    }
  }
  if (!node.is(YamlNode::Kind::scalar) || scalar_type(node) != ScalarType::number) return at.expected(expected());
  const double value = number_of(node);
  if (!fits(value)) return at.expected(expected(), limits_.advice);
  if (limits_.integral && value > kMaxInteger) return at.expected("an integer up to 9007199254740991 (2^53 - 1)");
  store(into, value);
}

bool NumberRule::fits(double value) const {
  if (!std::isfinite(value) || (limits_.integral && value != std::floor(value))) return false;
  if (limits_.low && (value < *limits_.low || (limits_.low_open && value == *limits_.low))) return false;
  return !limits_.high || value < *limits_.high || (!limits_.high_open && value == *limits_.high);
}

Json NumberRule::write(const void* value) const {
  const double number = load(value);
  for (const auto& [word, meaning] : limits_.words) {
    if (number == meaning) return word;
  }
  if (limits_.integral) return static_cast<std::int64_t>(number);
  return number;
}

Json NumberRule::schema() const {
  Json json = {{"type", limits_.integral ? "integer" : "number"}};
  if (limits_.low) json[limits_.low_open ? "exclusiveMinimum" : "minimum"] = *limits_.low;
  if (limits_.high) json[limits_.high_open ? "exclusiveMaximum" : "maximum"] = *limits_.high;
  if (limits_.integral && !limits_.high) json["maximum"] = static_cast<std::int64_t>(kMaxInteger);
  for (const auto* key : {"exclusiveMinimum", "minimum", "exclusiveMaximum", "maximum"}) {
    if (json.contains(key) && json[key].is_number_float() && json[key] == std::floor(json[key].get<double>())) {
      json[key] = static_cast<std::int64_t>(json[key].get<double>());
    }
  }
  if (limits_.words.empty()) return json;
  Json words = Json::array();
  for (const auto& [word, value] : limits_.words) words.push_back(word);
  return {{"oneOf", Json::array({Json{{"enum", words}}, json})}};
}

std::string NumberRule::expected() const {
  if (limits_.low && limits_.low == limits_.high) return show(*limits_.low);
  std::string text = (limits_.integral ? "an integer" : "a number") + limits_text(limits_);
  for (const auto& [word, value] : limits_.words) text += fmt::format(" or '{}'", word);
  return text;
}

Text::operator Is<std::string>() const {
  return {std::make_shared<TextRule>(choices_)};
}

RulePtr choice_rule(std::span<const std::string_view> names, const std::vector<std::size_t>& refused,
                    const std::string& advice) {
  std::vector<std::string> offered;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (std::find(refused.begin(), refused.end(), i) == refused.end()) offered.emplace_back(names[i]);
  }
  return std::make_shared<ChoiceRule>(names, std::move(offered), advice);
}

Is<bool> boolean() {
  return {std::make_shared<BooleanRule>()};
}
Is<std::string> existing_file() {
  return {std::make_shared<FileRule>()};
}

namespace {

struct Quantity {
  double amount = 0;
  std::string unit;
};

/// "<decimal> <unit>", separated by one space; the unit is everything after it.
std::optional<Quantity> split(const YamlNode& node) {
  if (!node.is(YamlNode::Kind::scalar)) return std::nullopt;
  const auto space = node.text.find(' ');
  if (space == std::string::npos) return std::nullopt;
  YamlNode amount;
  amount.kind = YamlNode::Kind::scalar;
  amount.text = node.text.substr(0, space);
  if (scalar_type(amount) != ScalarType::number || amount.text.find_first_not_of("0123456789.") != std::string::npos) {
    return std::nullopt;
  }
  return Quantity{number_of(amount), node.text.substr(space + 1)};
}

/// A decimal number with a non-zero digit. Avoids look-ahead, which Go's regular expressions (and so Helm's) lack.
constexpr const char* kAboveZero = "[0-9]*[1-9][0-9]*\\.?[0-9]*|[0-9]*\\.[0-9]*[1-9][0-9]*";

constexpr double kMaxExact = 0x1p53;  ///< from here on a double cannot represent every integer

class SpanRule : public Rule {
 public:
  explicit SpanRule(bool zero_allowed) : zero_allowed_(zero_allowed) {}

  void read(const Cursor& at, void* into) const override {
    const auto quantity = split(at.node());
    const bool number = at.node().is(YamlNode::Kind::scalar) && scalar_type(at.node()) == ScalarType::number;
    if (!quantity) return at.expected(expected(), number ? "; say of what" : "");
    const bool epochs = quantity->unit == "epoch" || quantity->unit == "epochs";
    if (!epochs && quantity->unit != "step" && quantity->unit != "steps") return at.expected(expected());
    if (!epochs && quantity->amount != std::floor(quantity->amount)) return at.expected("whole steps");
    if (!(quantity->amount < kMaxExact)) return at.expected("a span below 2^53");
    if (!zero_allowed_ && quantity->amount == 0) return at.expected("more than 0");
    *static_cast<Span*>(into) = {quantity->amount, epochs};
  }
  Json write(const void* value) const override { return to_string(*static_cast<const Span*>(value)); }
  Json schema() const override {
    const std::string pattern = zero_allowed_ ? "^([0-9]+ steps?|([0-9]+\\.?[0-9]*|\\.[0-9]+) epochs?)$"
                                              : fmt::format("^([0-9]*[1-9][0-9]* steps?|({}) epochs?)$", kAboveZero);
    return {{"type", "string"}, {"pattern", pattern}};
  }
  std::string expected() const override { return "a span such as '1 epoch' or '200 steps'"; }

 private:
  bool zero_allowed_;
};

class BytesRule : public Rule {
 public:
  void read(const Cursor& at, void* into) const override {
    auto& out = *static_cast<std::int64_t*>(into);
    if (const auto quantity = split(at.node())) {
      for (const auto& [unit, size] : kUnits) {
        const double total = quantity->amount * size;
        if (quantity->unit == unit && total >= 1 && total < kMaxExact) return void(out = total);
      }
    } else if (at.node().is(YamlNode::Kind::scalar) && scalar_type(at.node()) == ScalarType::number) {
      const double value = number_of(at.node());
      if (value >= 1 && value < kMaxExact && value == std::floor(value)) return void(out = value);
    }
    at.expected(expected());
  }
  Json write(const void* value) const override { return *static_cast<const std::int64_t*>(value); }
  Json schema() const override {
    return {{"oneOf",
             Json::array({Json{{"type", "integer"}, {"minimum", 1}},
                          Json{{"type", "string"}, {"pattern", fmt::format("^({}) (KiB|MiB|GiB)$", kAboveZero)}}})}};
  }
  std::string expected() const override { return "a size of at least 1 byte such as 1048576 or '1 MiB'"; }

 private:
  static constexpr std::array<std::pair<const char*, double>, 3> kUnits{
      {{"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}}};
};

}  // namespace

Is<Span> span(bool zero_allowed) {
  return {std::make_shared<SpanRule>(zero_allowed)};
}
Is<std::int64_t> bytes() {
  return {std::make_shared<BytesRule>()};
}

}  // namespace lockstep::config
