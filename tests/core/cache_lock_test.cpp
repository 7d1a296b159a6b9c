// Processes that want the same entry of a cache. Two openings of a lock are as two processes.
#include "core/cache_directory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "core/files.hpp"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

class CacheLockTest : public testing::Test {
 protected:
  ~CacheLockTest() override { std::filesystem::remove(entry_ + ".lock"); }
  std::string entry_ = testing::TempDir() + "entry-" + std::to_string(getpid());
};

TEST_F(CacheLockTest, TheHolderIsNamedAndTheLockGoesWithIt) {
  CacheLock lock = lock_to_make(entry_);
  ASSERT_NE(lock.file, nullptr);
  EXPECT_FALSE(lock.waited);
  const std::string holder = read_whole_file(entry_ + ".lock").value_or("");
  EXPECT_TRUE(holder.starts_with("process " + std::to_string(getpid()) + " on ")) << holder;
  unlock_made(lock);
  EXPECT_FALSE(std::filesystem::exists(entry_ + ".lock"));
}

TEST_F(CacheLockTest, AWaitIsAnnouncedAndEnds) {
  const CacheLock held = lock_to_make(entry_);
  testing::internal::CaptureStderr();
  const CacheLock second = lock_to_make(entry_, {milliseconds(0), milliseconds(100)});
  EXPECT_EQ(second.file, nullptr);
  EXPECT_TRUE(second.waited);
  const std::string holder = read_whole_file(entry_ + ".lock").value_or(""), lock = entry_ + ".lock";
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "lockstep: warning: waiting for " + holder + ", which holds " + lock + "; at most 0 s\n" +
                "lockstep: warning: " + holder + " has held " + lock +
                " for 0 s: going on without it; end that process if it hangs\n");
}

TEST_F(CacheLockTest, WhoMayNotWaitDoesNot) {
  const CacheLock held = lock_to_make(entry_);
  const CacheLock second = lock_to_make(entry_, {.limit = milliseconds(0)});
  EXPECT_EQ(second.file, nullptr);
  EXPECT_FALSE(second.waited);
}

TEST_F(CacheLockTest, WithoutAFolderThereIsNoLock) {
  EXPECT_EQ(lock_to_make(entry_ + "/none/entry").file, nullptr);
}

}  // namespace
}  // namespace lockstep
