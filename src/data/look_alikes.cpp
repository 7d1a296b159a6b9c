#include "data/look_alikes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "data/readers/utf8.hpp"
#include "data/tokenizer/unicode_text.hpp"

namespace lockstep::data {
namespace {

bool has_ascii_only(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) >= 0; });
}

/// What is seen of a name.
std::string seen(const std::string& name) {
  std::string text = name, out;
  normalize(NormalForm::nfkc, text);
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_character(text, at);
    if (!is_control(c)) append_utf8(out, c);
  }
  const auto first = out.find_first_not_of(' ');
  return first == std::string::npos ? "" : out.substr(first, out.find_last_not_of(' ') - first + 1);
}

/// A name that looks like another one; "" if there is none.
std::string first_look_alike(const std::vector<std::string>& names) {
  if (std::all_of(names.begin(), names.end(), has_ascii_only)) return "";
  std::map<std::string, std::size_t> count;
  for (const auto& name : names) {
    if (first_not_utf8(name) != name.size()) return "";
    if (++count[seen(name)] == 2) return seen(name);
  }
  return "";
}

}  // namespace

std::vector<std::string> look_alikes(const DataSetInfo& info) {
  std::vector<std::string> warnings;
  const auto judge = [&](const std::vector<std::string>& names, const std::string& what) {
    const auto name = first_look_alike(names);
    if (name.empty()) return;
    warnings.push_back(fmt::format(
        "{} called '{}' look alike: they differ in spaces or characters that are not seen; write them alike", what,
        name));
  };
  judge(info.class_names, "two classes");
  for (const auto& column : info.columns)
    judge(column.categories, fmt::format("column '{}': two categories", column.name));
  return warnings;
}

}  // namespace lockstep::data
