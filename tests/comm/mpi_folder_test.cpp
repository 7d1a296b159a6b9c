#include "comm/transport/mpi_folder.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

namespace lockstep::comm {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSetting = "OMPI_MCA_btl_vader_backing_directory";
constexpr uid_t kNobody = 65534;

// A process with its own folder, which contains a file, until it is killed.
class Rank {
 public:
  explicit Rank(uid_t user = geteuid()) {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    process_ = fork();
    if (process_ == 0) {
      if (setresuid(user, user, user) != 0) _exit(1);
      const MpiFolder folder;
      std::ofstream(folder.path() + "/segment") << "4 MB";
      [[maybe_unused]] const ssize_t count = write(ends[1], folder.path().data(), folder.path().size());
      close(ends[1]);
      while (true) pause();
    }
    close(ends[1]);
    std::array<char, 256> path{};
    EXPECT_GT(read(ends[0], path.data(), path.size() - 1), 0);
    close(ends[0]);
    path_ = path.data();
  }
  ~Rank() { end(); }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  void end() {
    if (process_ < 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  [[nodiscard]] const std::string& folder() const { return path_; }

 private:
  pid_t process_ = -1;
  std::string path_;
};

class MpiFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    if (access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "/dev/shm cannot be written";
    for (const char* name : {kSetting, "OMPI_MCA_btl_sm_backing_directory", "OMPI_COMM_WORLD_LOCAL_RANK"}) {
      unsetenv(name);
    }
  }
};

TEST_F(MpiFolderTest, IsToldToOpenMpiAndGoesWithItsContent) {
  std::string path;
  {
    const MpiFolder folder;
    path = folder.path();
    ASSERT_TRUE(fs::is_directory(path));
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
    EXPECT_STREQ(std::getenv(kSetting), path.c_str());
    EXPECT_STREQ(std::getenv("OMPI_MCA_btl_sm_backing_directory"), path.c_str());
    std::ofstream(path + "/segment") << "4 MB";
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(MpiFolderTest, AUsersChoiceStands) {
  setenv(kSetting, "/somewhere", 1);
  const MpiFolder folder;
  EXPECT_EQ(folder.path(), "");
  EXPECT_STREQ(std::getenv(kSetting), "/somewhere");
}

TEST_F(MpiFolderTest, OfADeadRankIsRemovedAndOfALiveOneStays) {
  Rank dead;
  const Rank live;
  ASSERT_TRUE(fs::exists(dead.folder() + "/segment"));
  dead.end();
  remove_dead_mpi_folders();
  EXPECT_FALSE(fs::exists(dead.folder()));
  EXPECT_TRUE(fs::exists(live.folder() + "/segment"));
}

TEST_F(MpiFolderTest, TheNextStartRemovesThoseOfTheDead) {
  Rank dead;
  dead.end();
  const MpiFolder next;
  EXPECT_FALSE(fs::exists(dead.folder()));
  EXPECT_TRUE(fs::exists(next.path()));
}

// Neither another user's folder nor one that only has a similar name.
TEST_F(MpiFolderTest, OthersStay) {
  const std::string number = std::to_string(getpid());
  const std::string file = "/dev/shm/lockstep-mpi-file-" + number, link = "/dev/shm/lockstep-mpi-link-" + number,
                    other = "/dev/shm/lockstep-other-" + number;
  std::ofstream(file) << "a file";
  fs::create_directory(other);
  fs::create_directory_symlink(other, link);
  remove_dead_mpi_folders();
  for (const auto& path : {file, link, other}) {
    EXPECT_TRUE(fs::exists(path)) << path;
    fs::remove(path);
  }
  if (geteuid() != 0) return;
  Rank others(kNobody);
  others.end();
  remove_dead_mpi_folders();
  EXPECT_TRUE(fs::exists(others.folder() + "/segment"));
  fs::remove_all(others.folder());
}

}  // namespace
}  // namespace lockstep::comm
