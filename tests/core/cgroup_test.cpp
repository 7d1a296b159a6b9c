// The limits of made-up cgroups.
#include "core/cgroup.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace lockstep {
namespace {

class CgroupsTest : public ::testing::Test {
 protected:
  ~CgroupsTest() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << "\n";
  }
  const std::string root_ = testing::TempDir() + "cgroups-" + std::to_string(getpid());
};

TEST_F(CgroupsTest, TheSmallestLimitOfAllAboveCounts) {
  write("/sys/fs/cgroup/cgroup.controllers", "cpu memory");
  write("/proc/self/cgroup", "0::/pod/run");
  write("/sys/fs/cgroup/pod/cpu.max", "150000 100000");
  write("/sys/fs/cgroup/pod/run/cpu.max", "max 100000");
  write("/sys/fs/cgroup/pod/memory.max", "1000");
  write("/sys/fs/cgroup/pod/memory.current", "900");
  write("/sys/fs/cgroup/pod/run/memory.max", "500");
  write("/sys/fs/cgroup/pod/run/memory.current", "100");
  write("/sys/fs/cgroup/pod/run/memory.events", "oom 3\noom_kill 2");
  const Cgroups cgroups(root_);
  EXPECT_EQ(cgroups.cores(), 1.5);
  EXPECT_EQ(cgroups.memory_limit(), 500);
  EXPECT_EQ(cgroups.memory_left(), 100);
  EXPECT_EQ(cgroups.memory_kills(), 2);
}

TEST_F(CgroupsTest, VersionOne) {
  write("/proc/self/cgroup", "4:memory:/t\n1:cpu,cpuacct:/t\n0::/");
  write("/sys/fs/cgroup/cpu/t/cpu.cfs_quota_us", "50000");
  write("/sys/fs/cgroup/cpu/t/cpu.cfs_period_us", "100000");
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  write("/sys/fs/cgroup/memory/t/memory.limit_in_bytes", "300000000");
  write("/sys/fs/cgroup/memory/t/memory.usage_in_bytes", "100000000");
  write("/sys/fs/cgroup/memory/t/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 7");
  const Cgroups cgroups(root_);
  EXPECT_EQ(cgroups.cores(), 0.5);
  EXPECT_EQ(cgroups.memory_limit(), 300000000);
  EXPECT_EQ(cgroups.memory_left(), 200000000);
  EXPECT_EQ(cgroups.memory_kills(), 7);
}

TEST_F(CgroupsTest, AContainersRootIsItsOwnCgroup) {
  write("/proc/self/cgroup", "4:memory:/docker/abc");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000");
  EXPECT_EQ(Cgroups(root_).memory_limit(), 1000);
}

TEST_F(CgroupsTest, NoCgroupsLimitNothing) {
  const Cgroups cgroups(root_);
  EXPECT_EQ(cgroups.cores(), 0);
  EXPECT_EQ(cgroups.memory_limit(), Cgroups::kNoLimit);
  EXPECT_EQ(cgroups.memory_left(), Cgroups::kNoLimit);
  EXPECT_EQ(cgroups.memory_kills(), 0);
}

}  // namespace
}  // namespace lockstep
