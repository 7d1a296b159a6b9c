// tests/bad/jobs: one folder per mistake, with the job (job.yaml), overrides if any (args, one per line) and the exact
// message (expected.txt). Jobs are read with these tests' catalogue.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "config/config.hpp"
#include "config/test_catalogue.hpp"

namespace lockstep::config {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  std::istringstream text(read_file(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

std::vector<std::filesystem::path> folders() {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(BAD_JOBS)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

class BadJob : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(BadJob, HasItsMessage) {
  try {
    (void)load_text(read_file(GetParam() / "job.yaml"), "job.yaml", read_lines(GetParam() / "args"), test_catalogue(),
                    /*need_data=*/true);
    FAIL() << "the job was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_EQ(error.what() + std::string("\n"), read_file(GetParam() / "expected.txt"));
  }
}

INSTANTIATE_TEST_SUITE_P(All, BadJob, testing::ValuesIn(folders()),
                         [](const auto& job) { return job.param.filename().string(); });

TEST(BadJobs, AreManyAndWhole) {
  EXPECT_GE(folders().size(), 35u);
  for (const auto& folder : folders()) EXPECT_TRUE(std::filesystem::exists(folder / "expected.txt")) << folder;
}

}  // namespace
}  // namespace lockstep::config
