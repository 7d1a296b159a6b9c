// Attributes: the typed settings of an op, a model, an optimizer and so on. They are declared once; the job-file
// parser, the JSON Schema, `lockstep show` and the op itself all use that declaration.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace lockstep {

/// A duration within a training run: "3 epochs" or "200 steps".
struct Span {
  double amount = 0;
  bool epochs = false;
  std::int64_t steps(std::int64_t steps_per_epoch) const;  ///< rounded to the nearest
  bool operator==(const Span&) const = default;
};

using Attribute =
    std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<Span>, Span>;

/// integers: one integer, a list of them, or one of the spec's `choices`. spans: a list of them. No span has length 0.
enum class AttributeKind { boolean, integer, number, text, integers, spans, span };

struct AttributeSpec {
  std::string name;
  AttributeKind kind = AttributeKind::integer;
  std::string doc;
  std::optional<Attribute> default_value = {};       ///< absent: the attribute is required, unless `optional`
  bool optional = false;                             ///< may be missing, and then is not in Attributes
  std::optional<double> minimum = {}, maximum = {};  ///< inclusive
  bool above_minimum = false;                        ///< the minimum itself is out of range
  bool below_maximum = false;                        ///< the maximum itself is out of range
  std::vector<std::string> choices = {};             ///< for text
};

/// Values by name. The attributes that an op or a model receives are checked and complete: every declared attribute is
/// present with its kind, except optional ones. The accessors throw if an attribute is missing or of another kind,
/// which is a bug.
class Attributes {
 public:
  Attributes() = default;
  explicit Attributes(std::map<std::string, Attribute> values) : values_(std::move(values)) {}

  void set(const std::string& name, Attribute value) { values_[name] = std::move(value); }
  bool has(const std::string& name) const { return values_.contains(name); }
  bool is_text(const std::string& name) const { return std::holds_alternative<std::string>(at(name)); }
  bool boolean(const std::string& name) const { return std::get<bool>(at(name)); }
  std::int64_t integer(const std::string& name) const { return std::get<std::int64_t>(at(name)); }
  double number(const std::string& name) const;  ///< an integer is a number too
  const std::string& text(const std::string& name) const { return std::get<std::string>(at(name)); }
  std::vector<std::int64_t> integers(const std::string& name) const;
  const std::vector<Span>& spans(const std::string& name) const;
  const Span& span(const std::string& name) const { return std::get<Span>(at(name)); }
  const std::map<std::string, Attribute>& all() const { return values_; }
  bool operator==(const Attributes&) const = default;

 private:
  const Attribute& at(const std::string& name) const;
  std::map<std::string, Attribute> values_;
};

/// A rule that involves more than one attribute.
struct AttributeCheck {
  std::vector<std::string> attributes;  ///< that the rule reads; a problem is reported at the first
  /// Returns "expected ..., found ...", or an empty string if there is no problem.
  std::function<std::string(const Attributes&)> problem;
};

/// Fills in missing defaults, for code that builds jobs and graphs in C++. Throws Error(configuration) for an unknown
/// name, a wrong kind, a value out of range or a check that fails. `what` names the owner in messages: "op 'conv'".
[[nodiscard]] Attributes complete(const std::vector<AttributeSpec>& specs, Attributes given, const std::string& what,
                                  const std::vector<AttributeCheck>& checks = {});

[[nodiscard]] std::string to_string(const Span& span);
[[nodiscard]] std::string to_string(const Attribute& value);

}  // namespace lockstep
