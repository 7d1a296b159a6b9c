#include "data/look_alikes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "data/readers/utf8.hpp"
#include "data/tokenizer/unicode_text.hpp"

namespace lockstep::data {
namespace {

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
  std::map<std::string, std::size_t> count;
  for (const auto& name : names) {
    if (first_not_utf8(name) != name.size()) return "";
    if (++count[seen(name)] == 2) return seen(name);
  }
  return "";
}

std::string in_lower_case(const std::string& name) {
  std::string out;
  for (std::size_t at = 0; at < name.size();) append_lower(out, next_character(name, at));
  return out;
}

/// "'Cat' and 'cat'"; "" if there are none. Single letters are often meant.
std::string first_of_one_word(const std::vector<std::string>& names) {
  std::map<std::string, std::string> words;
  for (const auto& name : names) {
    if (first_not_utf8(name) != name.size()) return "";
    if (name.size() == 1) continue;
    const auto [word, is_new] = words.try_emplace(in_lower_case(name), name);
    if (!is_new) return fmt::format("'{}' and '{}'", word->second, name);
  }
  return "";
}

}  // namespace

std::vector<std::string> look_alikes(const DataSetInfo& info) {
  std::vector<std::string> warnings;
  const auto judge = [&](const std::vector<std::string>& names, const std::string& what) {
    if (const auto name = first_look_alike(names); !name.empty()) {
      warnings.push_back(fmt::format(
          "{} called '{}' look alike: they differ in spaces or characters that are not seen; write them alike", what,
          name));
    } else if (const auto words = first_of_one_word(names); !words.empty()) {
      warnings.push_back(fmt::format("{} differ in capitals only: {}; write them alike", what, words));
    }
  };
  judge(info.class_names, "two classes");
  for (const auto& column : info.columns)
    judge(column.categories, fmt::format("column '{}': two categories", column.name));
  return warnings;
}

}  // namespace lockstep::data
