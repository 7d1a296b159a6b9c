// What RDMA needs of a host.
#include "core/rdma.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace lockstep {
namespace {

TEST(Rdma, CountsDevicesThatProcessesOpen) {
  const std::string folder = std::filesystem::temp_directory_path() / ("lockstep-rdma-" + std::to_string(getpid()));
  EXPECT_EQ(rdma_facts(folder).devices, 0U);
  std::filesystem::create_directory(folder);
  for (const char* name : {"uverbs0", "uverbs1", "rdma_cm", "umad0"}) std::ofstream(folder + "/" + name) << "";
  EXPECT_EQ(rdma_facts(folder).devices, 2U);
  std::filesystem::remove_all(folder);
}

TEST(Rdma, WhatIsMissingIsOneSentence) {
  EXPECT_EQ(rdma_problem({1, RdmaFacts::kNoLimit}, "a"), "");
  EXPECT_EQ(rdma_problem({1, 1 << 30}, "a"), "");
  EXPECT_EQ(
      rdma_problem({0, RdmaFacts::kNoLimit}, "a"),
      "expected an RDMA device (uverbs) in /dev/infiniband on a, found none; see that the device plugin gives one "
      "to the pod, or train without RDMA (network.profile: tcp)");
  EXPECT_EQ(rdma_problem({2, 8 << 20}, "a"),
            "expected at least 1 GiB of memory that may be locked for RDMA on a, found 8192 KiB (ulimit -l); set "
            "LimitMEMLOCK=infinity for the container runtime there");
}

}  // namespace
}  // namespace lockstep
