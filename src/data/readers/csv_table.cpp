#include "data/readers/csv_table.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const std::string& where) : text_(text), where_(where) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // skips a byte order mark
  }

  std::vector<CsvRow> rows() {
    std::vector<CsvRow> rows;
    while (at_ < text_.size()) {
      CsvRow row{line_, {}};
      do row.fields.push_back(field());
      while (take(','));
      end_line();
      if (row.fields.size() > 1 || !row.fields.front().empty()) rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\n'; }

  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void end_line() {
    take('\r');
    if (at_ < text_.size() && !take('\n')) {
      throw Error(ExitCode::data, fmt::format("{}:{}: text after a closing quote; expected a comma", where_, line_));
    }
    ++line_;
  }

  std::string field() {
    if (take('"')) return quoted();
    const auto begin = at_;
    while (peek() != ',' && peek() != '\n' && peek() != '\r') ++at_;
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
      if (c == '\n') ++line_;
      out += c;
    }
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

std::vector<CsvRow> parse_csv(std::string_view text, const std::string& where) {
  return Parser(text, where).rows();
}

}  // namespace lockstep::data
