#include "config/yaml_dialects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <regex>

namespace lockstep::config {
namespace {

constexpr std::array kTrue{"y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "True", "TRUE"};
constexpr std::array kFalse{"n", "N", "no", "No", "NO", "off", "Off", "OFF", "False", "FALSE"};

bool is_number(std::string_view text) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.text = text;
  return scalar_type(node) == ScalarType::number;
}

/// The base that a prefix states, as Go's strconv.ParseInt(text, 0) has them: 0x, 0o, 0b, or 0 before more digits.
int base_of(std::string_view digits) {
  if (digits.size() < 2 || digits[0] != '0') return 10;
  switch (digits[1] | 0x20) {
    case 'x':
      return 16;
    case 'o':
      return 8;
    case 'b':
      return 2;
    default:
      return std::isdigit(static_cast<unsigned char>(digits[1])) != 0 ? 8 : 10;
  }
}

/// 017, 0o17, 0x1f, 0b11, 1_000: what Helm makes of them.
std::optional<std::string> other_number(std::string_view scalar) {
  const std::size_t sign = !scalar.empty() && (scalar[0] == '-' || scalar[0] == '+') ? 1 : 0;
  const std::size_t digit = sign == 0 && scalar.starts_with('.') ? 1 : sign;
  if (digit >= scalar.size() || (std::isdigit(static_cast<unsigned char>(scalar[digit])) == 0 && sign == 0)) return {};
  std::string plain(scalar);
  std::erase(plain, '_');
  std::string_view digits = std::string_view(plain).substr(std::min(sign, plain.size()));
  const int base = base_of(digits);
  const bool octal = base == 8 && (digits[1] | 0x20) != 'o';
  if (base != 10) {
    digits.remove_prefix(octal ? 1 : 2);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (error == std::errc() && !digits.empty() && end == digits.data() + digits.size()) {
      return fmt::format("Helm reads as {}{}", scalar[0] == '-' ? "-" : "", value);
    }
    const bool whole = std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (octal && whole) return "YAML 1.1 reads as text";  // 08
  }
  if (plain.size() < scalar.size() && is_number(plain)) return "Helm reads as " + plain;
  return {};
}

}  // namespace

std::optional<std::string> other_reading(std::string_view scalar) {
  if (std::find(kTrue.begin(), kTrue.end(), scalar) != kTrue.end()) return "Helm reads as true";
  if (std::find(kFalse.begin(), kFalse.end(), scalar) != kFalse.end()) return "Helm reads as false";
  static const std::regex clock(R"([-+]?([1-9][0-9_]*(:[0-5]?[0-9])+|[0-9][0-9_]*(:[0-5]?[0-9])+\.[0-9_]*))");
  static const std::regex date(
      R"(\d{4}-\d\d-\d\d|\d{4}-\d\d?-\d\d?([Tt]|[ \t]+)\d\d?:\d\d:\d\d(\.\d*)?[ \t]*(Z|[-+]\d.*)?)");
  if (std::regex_match(scalar.begin(), scalar.end(), clock)) return "YAML 1.1 reads as a number of base 60";
  if (std::regex_match(scalar.begin(), scalar.end(), date)) return "YAML 1.1 reads as a date";
  return other_number(scalar);
}

namespace {

/// Keys are text here; Helm reads a number first, and writes it in its own way.
std::optional<std::string> other_key(const std::string& key) {
  if (key == "<<") return "YAML 1.1 merges into the map around it";
  if (auto other = other_reading(key)) return other;
  static const std::regex canonical("0|-?[1-9][0-9]{0,17}");
  if (is_number(key) && !std::regex_match(key, canonical)) return "Helm may write in another way";
  return {};
}

void refuse(const Mark& mark, const std::string& path, std::string_view what, const std::string& found,
            const std::string& other, Session& session) {
  const Place place = session.place(mark, path);
  const bool reported = std::any_of(session.problems.begin(), session.problems.end(), [&](const Problem& problem) {
    return problem.place.line == place.line && problem.place.column == place.column;
  });
  if (mark.command_line || reported) return;
  const bool number = found.find_first_of("0123456789") != std::string::npos && !other.ends_with("date");
  session.problem(mark, path,
                  fmt::format("expected a {} of one meaning, found '{}', which {}; {}", what, found, other,
                              number && what == "value" ? "write a plain decimal number, or put text in quotes"
                                                        : "put it in quotes"));
}

}  // namespace

void refuse_ambiguous(const YamlNode& node, const std::string& path, Session& session) {
  const bool plain = node.is(YamlNode::Kind::scalar) && !node.quoted;
  if (const auto other = plain ? other_reading(node.text) : std::nullopt) {
    refuse(node.mark, path, "value", node.text, *other, session);
  }
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    refuse_ambiguous(node.items[i], fmt::format("{}[{}]", path, i), session);
  }
  for (const Entry& entry : node.entries) {
    const std::string inner = path.empty() ? entry.key : path + "." + entry.key;
    if (const auto other = entry.quoted ? std::nullopt : other_key(entry.key)) {
      refuse(entry.mark, inner, "key", entry.key, *other, session);
    }
    refuse_ambiguous(entry.value, inner, session);
  }
}

}  // namespace lockstep::config
