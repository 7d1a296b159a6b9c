// A file that one holder at a time may have. Two openings of it are as two processes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <system_error>

#include "core/locked_file.hpp"
#include "core/whole_file.hpp"

namespace lockstep {
namespace {

class LockedFileTest : public testing::Test {
 protected:
  ~LockedFileTest() override { std::filesystem::remove(path_); }
  std::string path_ = testing::TempDir() + "locked_file-" + std::to_string(getpid());
};

TEST_F(LockedFileTest, HasOneHolderUntilThatIsGone) {
  auto first = std::make_unique<LockedFile>(path_);
  LockedFile second(path_);
  EXPECT_TRUE(second.is_free());
  EXPECT_TRUE(first->try_lock());
  EXPECT_FALSE(second.is_free());
  EXPECT_FALSE(second.try_lock());
  first.reset();
  EXPECT_TRUE(second.is_free());
  EXPECT_TRUE(second.try_lock());
}

TEST_F(LockedFileTest, WhoOnlyAsksHoldsNothing) {
  LockedFile first(path_), second(path_);
  EXPECT_TRUE(first.is_free());
  EXPECT_TRUE(second.is_free());
  EXPECT_TRUE(second.try_lock());
}

TEST_F(LockedFileTest, AShorterTextReplacesALongerOne) {
  LockedFile file(path_);
  file.write("run-main-0");
  file.write("run");
  EXPECT_EQ(read_whole_file(path_), "run");
}

TEST_F(LockedFileTest, AFolderThatIsMissingIsAnError) {
  EXPECT_THROW(LockedFile(path_ + "/none/file"), std::system_error);
}

}  // namespace
}  // namespace lockstep
