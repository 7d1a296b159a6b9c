// Runs that share a folder of targets, and some of them a name.
#include "observe/shared_targets.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "core/files.hpp"

namespace lockstep::observe {
namespace {

namespace fs = std::filesystem;

class SharedTargetsTest : public ::testing::Test {
 protected:
  ~SharedTargetsTest() override { fs::remove_all(folder_); }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  const std::string folder_ = testing::TempDir() + "targets-" + std::to_string(getpid());
};

TEST_F(SharedTargetsTest, TwoRunsOfOneNameHaveAFileEach) {
  SharedTargets first(folder_, "run", "/a/run"), second(folder_, "run", "/b/run");
  EXPECT_NO_THROW(first.write("first", ""));
  EXPECT_NO_THROW(second.write("second", ""));
  EXPECT_EQ(read_whole_file(folder_ + "/run.json"), "first");
  EXPECT_EQ(files(), 2U);
  second.withdraw();
  EXPECT_EQ(read_whole_file(folder_ + "/run.json"), "first");
  first.withdraw();
  EXPECT_EQ(files(), 0U);
}

TEST_F(SharedTargetsTest, ARunThatHasCrashedFindsItsOwnFileAgain) {
  {
    SharedTargets crashed(folder_, "run", "/a/run");
    EXPECT_NO_THROW(crashed.write("old", ""));
  }
  SharedTargets again(folder_, "run", "/a/run");
  EXPECT_NO_THROW(again.write("new", "old"));
  EXPECT_EQ(read_whole_file(folder_ + "/run.json"), "new");
  EXPECT_EQ(files(), 1U);
}

TEST_F(SharedTargetsTest, WithoutAFolderNothingIsWritten) {
  SharedTargets none("", "run", "/a/run");
  EXPECT_NO_THROW(none.write("text", ""));
  none.withdraw();
}

}  // namespace
}  // namespace lockstep::observe
