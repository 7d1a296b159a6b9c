// Which GPU a rank uses. The messages for hosts without GPUs are tested with the program:
// tests/cuda/gpu_messages_test.py.
#include "run/train/device_choice.hpp"

#include <gtest/gtest.h>

#include "lockstep/error.hpp"

namespace lockstep::train {

namespace {

GpuFacts host_with(int gpus) {
  GpuFacts facts;
  facts.module_cuda_version = 13000;
  facts.driver.state = device::DriverState::ready;
  facts.driver.cuda_version = 13000;
  for (int i = 0; i < gpus; ++i) {
    facts.driver.gpus.push_back({.ordinal = gpus - 1 - i,
                                 .name = "GPU",
                                 .memory_bytes = 1,
                                 .major = 9,
                                 .minor = 0,
                                 .pci_bus = "0000:0" + std::to_string(i) + ":00.0"});
  }
  return facts;
}

Job job_with(std::vector<std::int64_t> devices) {
  Job job;
  job.device = DeviceChoice::cuda;
  job.devices = std::move(devices);
  return job;
}

LocalRank place(int local_rank, int local_size) {
  return {.host = "node7", .rank = 10 + local_rank, .local_rank = local_rank, .local_size = local_size};
}

std::pair<ExitCode, std::string> refusal(const Job& job, const GpuFacts& facts, const LocalRank& where) {
  try {
    (void)choose_gpu(job, facts, where);
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {ExitCode::done, ""};
}

}  // namespace

TEST(DeviceChoice, LocalRanksTakeGpusInOrderOfTheirBus) {
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(choose_gpu(job_with({}), host_with(3), place(rank, 3)).pci_bus,
              "0000:0" + std::to_string(rank) + ":00.0");
  }
}

TEST(DeviceChoice, SharedGpusAreTakenInTurn) {
  GpuFacts facts = host_with(2);
  facts.shared = true;
  for (const int rank : {0, 1, 2, 3, 4}) {
    EXPECT_EQ(choose_gpu(job_with({}), facts, place(rank, 5)).pci_bus, "0000:0" + std::to_string(rank % 2) + ":00.0");
  }
}

TEST(DeviceChoice, DevicesSayWhichAndInWhatOrder) {
  const Job job = job_with({2, 0});
  EXPECT_EQ(choose_gpu(job, host_with(3), place(0, 2)).pci_bus, "0000:02:00.0");
  EXPECT_EQ(choose_gpu(job, host_with(3), place(1, 2)).pci_bus, "0000:00:00.0");
}

TEST(DeviceChoice, ADeviceThatIsNotThere) {
  EXPECT_EQ(
      refusal(job_with({0, 3}), host_with(2), place(0, 1)),
      std::pair(ExitCode::configuration, std::string("job.devices: expected GPUs of node7, numbered 0 to 1: device "
                                                     "3 asked for, 2 present; leave it out")));
}

TEST(DeviceChoice, MoreRanksThanGpus) {
  EXPECT_EQ(
      refusal(job_with({}), host_with(2), place(2, 3)),
      std::pair(ExitCode::usage, std::string("rank 12 on node7: expected a GPU for each rank, found 3 ranks and 2 "
                                             "visible there; start at most 2 on this host")));
  EXPECT_EQ(
      refusal(job_with({1}), host_with(2), place(0, 2)),
      std::pair(ExitCode::usage, std::string("rank 10 on node7: expected a GPU for each rank, found 2 ranks and 1 "
                                             "in devices there; start at most 1 on this host")));
}

// As if Slurm or a wrapper had set CUDA_VISIBLE_DEVICES for each rank.
TEST(DeviceChoice, RanksMaySeeOneGpuEach) {
  LocalRank second = place(1, 2);
  second.has_own = true;
  EXPECT_EQ(choose_gpu(job_with({}), host_with(1), second).pci_bus, "0000:00:00.0");
  EXPECT_TRUE(each_has_its_own({"0000:10:00.0", "0000:20:00.0"}));
  EXPECT_FALSE(each_has_its_own({"0000:10:00.0", "0000:20:00.0", "0000:10:00.0"}));
  EXPECT_FALSE(each_has_its_own({"0000:10:00.0", ""}));  // one of them sees several
  EXPECT_FALSE(each_has_its_own({"", ""}));
}

TEST(DeviceChoice, ANewerMinorReleaseNeedsNoNewerDriver) {
  GpuFacts facts = host_with(1);
  facts.module_cuda_version = 13020;
  EXPECT_EQ(refusal(job_with({}), facts, place(0, 1)).second, "");
}

TEST(DeviceChoice, OnlyCudaAsksForGpus) {
  const auto communicator = make_single_communicator();
  JobFile job;
  EXPECT_EQ(choose_backend(job, *communicator)->device().kind(), DeviceKind::cpu);
  job.device = DeviceChoice::cpu;
  EXPECT_EQ(choose_backend(job, *communicator)->device().kind(), DeviceKind::cpu);
}

}  // namespace lockstep::train
