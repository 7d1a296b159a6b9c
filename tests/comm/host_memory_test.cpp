#include "comm/transport/host_memory.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "comm/error_of.hpp"
#include "comm/transport/doorbell.hpp"
#include "comm/transport/mpi_session.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;

TEST(SharedSegment, TwoMappingsSeeTheSameBytes) {
  auto mine = SharedSegment::create(10'000, "tests");
  const FileServer server(mine.duplicate_file());
  const auto peers = SharedSegment::open(server.name(), 10'000, 20'000ms);
  ASSERT_NE(mine.data(), peers.data());
  std::fill_n(mine.data(), 10'000, std::byte{7});
  EXPECT_EQ(peers.data()[9'999], std::byte{7});
}

TEST(SharedSegment, SaysWhatIsNeededAndWhatToTryWhereThereIsTooLittle) {
  const std::string message = error_of([] { (void)SharedSegment::create(std::size_t{1} << 50, "tests"); });
  EXPECT_EQ(message.find("shared memory for tests: 1073741824.0 MiB are needed, /dev/shm has "), 0U) << message;
  EXPECT_NE(message.find("give it more: docker run --shm-size=2g"), std::string::npos) << message;
}

TEST(SharedSegment, SaysWhenAPeersMemoryIsNotVisible) {
  EXPECT_EQ(error_of([] { (void)SharedSegment::open("lockstep-nobody", 8, 20'000ms); }),
            "cannot open a peer's shared memory: Connection refused; ranks that call their host by one name must share "
            "its network namespace (containers: --network=host), or set LOCKSTEP_HOST_ID to a different name for each");
}

TEST(SharedSegment, SaysWhenAPeersMemoryHasAnotherSize) {
  auto mine = SharedSegment::create(8, "tests");
  const FileServer server(mine.duplicate_file());
  EXPECT_EQ(error_of([&] { (void)SharedSegment::open(server.name(), 16, 20'000ms); }),
            "a peer's shared memory has 8 bytes, expected 16");
}

// Maps memory on ranks with these layouts.
void map_layouts(const std::vector<std::string>& layouts, const std::vector<int>& host_of) {
  run_in_threads(
      static_cast<int>(layouts.size()),
      [&](Communicator& communicator) {
        const std::string& layout = layouts[static_cast<std::size_t>(communicator.rank())];
        (void)map_host_memory(communicator, {.bytes = 64, .layout = layout}, {"memory", 0});
      },
      host_of);
}

TEST(HostMemory, RanksOfAHostThatComputeOtherOffsetsAreNamed) {
  EXPECT_EQ(
      error_of(
          [] {
            map_layouts({"2 rings", "2 rings", "3 rings"}, {0, 0, 0});
          },
          ExitCode::internal),
      "memory for the all-reduce of gradients: its layout is '2 rings' on rank 0 (host a), but '3 rings' on rank 2 "
      "(host a). This is a bug in lockstep; please report it.");
  EXPECT_NO_THROW(map_layouts({"2 rings", "2 rings", "3 rings"}, {0, 0, 1})) << "each host has a layout of its own";
}

TEST(HostMemory, CanBeMappedAgain) {
  run_in_threads(2, [](Communicator& communicator) {
    std::unique_ptr<HostMemory> memory;
    for (const std::size_t bytes : {64U, 128U}) {
      const auto mark = [&](std::byte* block) {
        block[bytes - 1] = std::byte(bytes + static_cast<std::size_t>(communicator.rank()));
      };
      remap_host_memory(memory, communicator, {.bytes = bytes, .prepare = mark}, {"memory", 0});
      for (int r = 0; r < 2; ++r)
        EXPECT_EQ(memory->block(r)[bytes - 1], std::byte(bytes + static_cast<std::size_t>(r)));
      communicator.barrier({"read", 0});
    }
  });
}

TEST(FileServer, ManyMayAskAtOnceAndThoseWhoHangUpHarmNobody) {
  auto mine = SharedSegment::create(8, "tests");
  const FileServer server(mine.duplicate_file());
  std::vector<std::thread> peers;
  std::atomic<int> fetched{0};
  for (int i = 0; i < 32; ++i) {
    peers.emplace_back([&] {
      for (int again = 0; again < 20; ++again) fetched += fetch_file(server.name(), 20'000ms) ? 1 : 0;
    });
  }
  for (auto& peer : peers) peer.join();
  EXPECT_EQ(fetched, 32 * 20);
}

// What fetch_file() reports to a process of another user; the same text if the server belongs to another user.
std::string answer_to_nobody(const std::string& name) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::string said = "a file";
    try {
      constexpr uid_t kNobody = 65534;
      if (setresuid(kNobody, kNobody, kNobody) != 0) _exit(1);
      (void)fetch_file(name, 20'000ms);
    } catch (const Error& error) {
      said = error.what();
    }
    [[maybe_unused]] const ssize_t count = write(ends[1], said.data(), said.size());
    _exit(0);
  }
  close(ends[1]);
  std::array<char, 256> said{};
  EXPECT_GE(read(ends[0], said.data(), said.size() - 1), 0);
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return said.data();
}

TEST(FileServer, AnotherUserGetsNothing) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  auto mine = SharedSegment::create(8, "tests");
  const FileServer server(mine.duplicate_file());
  EXPECT_EQ(answer_to_nobody(server.name()), "the process there is another user's");
  EXPECT_TRUE(fetch_file(server.name(), 20'000ms)) << "it still serves its own user";
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

// Clears variables that the launcher of the tests themselves may have set.
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
