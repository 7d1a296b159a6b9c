#include "comm/host_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "comm/doorbell.hpp"
#include "comm/launcher.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;

std::string test_name() {
  return "/lockstep-test-" + std::to_string(getpid());
}

TEST(SharedSegment, TwoMappingsSeeTheSameBytes) {
  const auto mine = SharedSegment::create(test_name(), 10'000);
  const auto peers = SharedSegment::open(test_name(), 10'000);
  shm_unlink(test_name().c_str());
  ASSERT_NE(mine.data(), peers.data());
  std::fill_n(mine.data(), 10'000, std::byte{7});
  EXPECT_EQ(peers.data()[9'999], std::byte{7});
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::infrastructure);
    return error.what();
  }
  return "no error";
}

TEST(SharedSegment, SaysWhatIsNeededAndWhatToTryWhereThereIsTooLittle) {
  const std::string message = error_of([] { (void)SharedSegment::create(test_name(), std::size_t{1} << 50); });
  EXPECT_EQ(message.find("shared memory for the gradient exchange: 1073741824.0 MiB are needed, /dev/shm has "), 0U)
      << message;
  EXPECT_NE(message.find("give it more: docker run --shm-size=2g"), std::string::npos) << message;
  EXPECT_EQ(shm_unlink(test_name().c_str()), -1) << "nothing may be left behind";
}

TEST(SharedSegment, SaysWhenAPeersMemoryIsNotVisible) {
  EXPECT_EQ(error_of([] { (void)SharedSegment::open("/lockstep-nobody", 8); }),
            "cannot open a peer's shared memory /lockstep-nobody: No such file or directory; ranks that call their "
            "host by one name must share /dev/shm (containers: --ipc=host), or set LOCKSTEP_HOST_ID to a different "
            "name for each");
}

TEST(Doorbell, WakesASleeperAndKeepsTheDeadline) {
  Doorbell bell;
  const auto start = Clock::now();
  EXPECT_FALSE(bell.wait(bell.rings(), start + 50ms));
  EXPECT_GE(Clock::now() - start, 50ms);

  const std::uint32_t seen = bell.rings();
  std::thread ringer([&] {
    std::this_thread::sleep_for(50ms);
    bell.ring();
  });
  EXPECT_TRUE(bell.wait(seen, Clock::now() + 20s));
  ringer.join();
  EXPECT_TRUE(bell.wait(seen, Clock::now())) << "a ring that has happened is not waited for";
}

// Clears what a launcher of the tests themselves may have left.
class Launcher : public testing::Test {
 protected:
  Launcher() {
    for (const char* name :
         {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}) {
      unsetenv(name);
    }
  }
};

TEST_F(Launcher, NoneMeansOneRank) {
  EXPECT_FALSE(launched_by_mpi());
  EXPECT_EQ(launcher_info().ranks, 1);
  EXPECT_EQ(launcher_info().variable, "");
}

TEST_F(Launcher, OpenMpiSaysTheNumberOfRanks) {
  setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
  EXPECT_EQ(launcher_info().ranks, 3);
  EXPECT_EQ(launcher_info().variable, "OMPI_COMM_WORLD_SIZE");
  EXPECT_TRUE(launched_by_mpi());
  setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
  EXPECT_FALSE(launched_by_mpi());
  unsetenv("OMPI_COMM_WORLD_SIZE");
}

TEST_F(Launcher, ASlurmBatchScriptIsNotAStep) {
  setenv("SLURM_NTASKS", "4", 1);
  EXPECT_FALSE(launched_by_mpi());
  setenv("SLURM_STEP_ID", "0", 1);
  EXPECT_EQ(launcher_info().ranks, 4);
  unsetenv("SLURM_NTASKS");
  unsetenv("SLURM_STEP_ID");
}

TEST_F(Launcher, PmixAloneDoesNotSayHowMany) {
  setenv("PMIX_RANK", "0", 1);
  EXPECT_EQ(launcher_info().ranks, 0);
  EXPECT_TRUE(launched_by_mpi());
  unsetenv("PMIX_RANK");
}

}  // namespace
}  // namespace lockstep::comm
