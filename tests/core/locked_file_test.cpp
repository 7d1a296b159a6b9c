// A file that one holder at a time may have. Two openings of it are as two processes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "core/files.hpp"
#include "lockstep/error.hpp"

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
  try {
    const LockedFile file(path_ + "/none/file");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::cannot_create);
    EXPECT_EQ(error.what(), path_ + "/none/file: cannot create: No such file or directory");
  }
}

TEST_F(LockedFileTest, OneThatWasRemovedIsSignedAgainByItsHolder) {
  LockedFile file(path_);
  ASSERT_TRUE(file.try_lock());
  file.write("run");
  EXPECT_TRUE(file.renew());
  std::filesystem::remove(path_);
  EXPECT_TRUE(file.renew());
  EXPECT_EQ(read_whole_file(path_), "run");
  LockedFile other(path_);
  EXPECT_FALSE(other.try_lock());
}

TEST_F(LockedFileTest, OneThatAnotherProcessHasMadeAndLockedIsLost) {
  LockedFile file(path_);
  ASSERT_TRUE(file.try_lock());
  file.write("run");
  std::filesystem::remove(path_);
  auto other = std::make_unique<LockedFile>(path_);
  ASSERT_TRUE(other->try_lock());
  other->write("other");
  EXPECT_FALSE(file.renew());
  other.reset();  // it has come and gone: what it did there is not ours
  EXPECT_FALSE(file.renew());
  EXPECT_EQ(read_whole_file(path_), "other");
}

// The last holder removes the file while another process waits for the lock: both would hold one otherwise.
TEST_F(LockedFileTest, ALockOnAFileWithoutANameIsNone) {
  LockedFile late(path_);
  std::filesystem::remove(path_);
  LockedFile holder(path_);
  ASSERT_TRUE(holder.try_lock());
  EXPECT_FALSE(late.try_lock());
}

}  // namespace
}  // namespace lockstep
