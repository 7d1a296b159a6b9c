#include "data/readers/csv_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

const char* name_of_delimiter(char delimiter) {
  return delimiter == ',' ? "comma" : delimiter == ';' ? "semicolon" : delimiter == '\t' ? "tab" : "bar";
}

/// How many stand in the line that begins at `at`, outside of quotes; `at` is then behind it.
std::size_t count_in_line(std::string_view text, char delimiter, std::size_t& at) {
  std::size_t count = 0;
  for (bool quoted = false; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == '\n' || c == '\r')) break;
    if (!quoted && c == delimiter) ++count;
  }
  at = std::min(text.find_first_not_of("\r\n", at), text.size());
  return count;
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& where, char delimiter)
      : text_(text), where_(where), delimiter_(delimiter) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // skips a byte order mark
  }

  std::vector<CsvRow> rows() {
    std::vector<CsvRow> rows;
    while (at_ < text_.size()) {
      CsvRow row{line_, {}};
      do row.fields.push_back(field());
      while (take(delimiter_));
      end_line();
      if (row.fields.size() > 1 || !row.fields.front().empty()) rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\n'; }

  bool peek_is_not(char c) const { return at_ >= text_.size() || text_[at_] != c; }

  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void end_line() {
    const bool ended = take('\r');
    if (!take('\n') && !ended && at_ < text_.size()) {
      throw Error(ExitCode::data, fmt::format("{}:{}: text after a closing quote; expected a {}", where_, line_,
                                              name_of_delimiter(delimiter_)));
    }
    ++line_;
  }

  std::string field() {
    if (take('"')) return quoted();
    const auto begin = at_;
    while (peek() != delimiter_ && peek() != '\n' && peek() != '\r') ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string quoted() {
    const int begun = line_;
    std::string out;
    for (;;) {
      if (at_ >= text_.size()) {
        throw Error(ExitCode::data, fmt::format("{}:{}: a quote is opened here and never closed", where_, begun));
      }
      const char c = text_[at_++];
      if (c == '"' && !take('"')) return out;
      if (c == '\n' || (c == '\r' && peek_is_not('\n'))) ++line_;
      out += c;
    }
  }

  std::string_view text_;
  const std::string& where_;
  char delimiter_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

char delimiter_of(std::string_view text) {
  char chosen = ',';
  std::size_t at = 0, most = count_in_line(text, ',', at);
  for (const char other : {';', '\t', '|'}) {
    std::size_t behind = 0;
    const std::size_t count = count_in_line(text, other, behind);
    const bool again = behind == text.size() || count_in_line(text, other, behind) == count;
    if (count <= most || !again) continue;
    most = count;
    chosen = other;
  }
  return chosen;
}

std::vector<CsvRow> parse_csv(std::string_view text, const std::string& where, char delimiter) {
  return Parser(text, where, delimiter).rows();
}

}  // namespace lockstep::data
