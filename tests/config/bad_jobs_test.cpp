// tests/bad/jobs.txt: jobs with a mistake each, and the exact message (tests/bad/table.py says how they are written).
// Jobs are read with these tests' catalogue.
#include <gtest/gtest.h>

#include <fstream>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "config/test_catalogue.hpp"

namespace lockstep::config {
namespace {

struct Case {
  std::string name, job, expected;
  std::vector<std::string> overrides;
};
void PrintTo(const Case& bad, std::ostream* out) {
  *out << bad.name;
}

/// Words as in a shell, with single quotes at most.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  bool quoted = false, begun = false;
  for (const char c : line) {
    if (c == '\'') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      begun = false;
      continue;
    }
    if (!begun) words.emplace_back();
    begun = true;
    if (c != '\'') words.back() += c;
  }
  return words;
}

std::vector<Case> cases() {
  std::vector<Case> list;
  std::ifstream table(BAD_JOBS);
  for (std::string line; std::getline(table, line);) {
    if (line.starts_with("=== ")) {
      list.push_back({line.substr(4), "", "", {}});
    } else if (list.empty() || line.empty() || line.starts_with("--- ") || line.starts_with("% ")) {
      continue;
    } else if (line[0] == '|') {
      list.back().job += line.substr(1) + "\n";
    } else if (line[0] == '$') {
      list.back().overrides = words_of(line.substr(1));
    } else {
      list.back().expected += line + "\n";
    }
  }
  return list;
}

class BadJob : public testing::TestWithParam<Case> {};

bool only_data_are_missing(const std::string& messages) {
  std::istringstream lines(messages);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("expected data, found nothing at") == std::string::npos) return false;
  }
  return true;
}

TEST_P(BadJob, HasItsMessage) {
  try {
    (void)load_text(GetParam().job, "job.yaml", GetParam().overrides, test_catalogue(), /*need_data=*/true);
    FAIL() << "the job was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), only_data_are_missing(GetParam().expected) ? ExitCode::data : ExitCode::configuration);
    EXPECT_EQ(error.what() + std::string("\n"), GetParam().expected);
  }
}

INSTANTIATE_TEST_SUITE_P(All, BadJob, testing::ValuesIn(cases()), [](const auto& bad) { return bad.param.name; });

TEST(BadJobs, AreManyAndWhole) {
  EXPECT_GE(cases().size(), 160U);
  for (const Case& bad : cases()) EXPECT_FALSE(bad.expected.empty()) << bad.name;
}

}  // namespace
}  // namespace lockstep::config
