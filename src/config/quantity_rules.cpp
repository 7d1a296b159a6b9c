// Numbers with a unit: "3 epochs", "200 steps", "512 MiB".
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "config/scalar_rules.hpp"

namespace lockstep::config {
namespace {

struct Quantity {
  double amount = 0;
  std::string unit;
};

/// "<decimal> <unit>", one space between; unit is what follows.
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

/// A decimal number with a digit other than 0: a pattern without look-ahead, which Go's (and so Helm's) lacks.
constexpr const char* kAboveZero = "[0-9]*[1-9][0-9]*\\.?[0-9]*|[0-9]*\\.[0-9]*[1-9][0-9]*";

constexpr double kMost = 0x1p53;  ///< from here on a double cannot count

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
    if (!(quantity->amount < kMost)) return at.expected("a span below 2^53");
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
        if (quantity->unit == unit && total >= 1 && total < kMost) return void(out = static_cast<std::int64_t>(total));
      }
    } else if (at.node().is(YamlNode::Kind::scalar) && scalar_type(at.node()) == ScalarType::number) {
      const double value = number_of(at.node());
      if (value >= 1 && value < kMost && value == std::floor(value))
        return void(out = static_cast<std::int64_t>(value));
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
