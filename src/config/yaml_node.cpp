#include "config/yaml_node.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <utility>

#include "core/numbers.hpp"

namespace lockstep::config {
namespace {

std::size_t skip_digits(std::string_view text, std::size_t at) {
  while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0) ++at;
  return at;
}

/// [-+]? (digits [. digits?] | . digits) ([eE] [-+]? digits)?
bool is_decimal(std::string_view text) {
  std::size_t at = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  const std::size_t whole = skip_digits(text, at);
  std::size_t digits = whole - at;
  at = whole;
  if (at < text.size() && text[at] == '.') {
    const std::size_t fraction = skip_digits(text, at + 1);
    digits += fraction - (at + 1);
    at = fraction;
  }
  if (digits == 0) return false;
  if (at == text.size()) return true;
  if (text[at] != 'e' && text[at] != 'E') return false;
  ++at;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  return at < text.size() && skip_digits(text, at) == text.size();
}

bool is_special(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return text == ".inf" || text == ".Inf" || text == ".INF" || text == ".nan" || text == ".NaN" || text == ".NAN";
}

}  // namespace

const Entry* YamlNode::find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.key == key; });
  return found == entries.end() ? nullptr : &*found;
}

Entry* YamlNode::find(std::string_view key) {
  return const_cast<Entry*>(std::as_const(*this).find(key));
}

ScalarType scalar_type(const YamlNode& scalar) {
  if (scalar.is(YamlNode::Kind::nothing)) return ScalarType::nothing;
  if (scalar.quoted) return ScalarType::text;
  if (scalar.text == "true" || scalar.text == "false") return ScalarType::boolean;
  if (is_decimal(scalar.text) || is_special(scalar.text)) return ScalarType::number;
  return ScalarType::text;
}

double number_of(const YamlNode& scalar) {
  if (is_decimal(scalar.text)) return number_from<double>(scalar.text).value_or(std::nan(""));
  const bool infinite = scalar.text.back() == 'f' || scalar.text.back() == 'F';
  return infinite ? std::numeric_limits<double>::infinity() : std::nan("");
}

std::string describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::nothing:
      return "nothing";
    case YamlNode::Kind::sequence:
      return "a list";
    case YamlNode::Kind::mapping:
      return "a map";
    case YamlNode::Kind::scalar:
      break;
  }
  constexpr std::size_t kShown = 60;
  const std::string text = node.text.size() > kShown ? node.text.substr(0, kShown) + "..." : node.text;
  return scalar_type(node) == ScalarType::text ? "'" + text + "'" : text;
}

}  // namespace lockstep::config
