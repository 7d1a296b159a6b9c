// What may be wrong with hosts: each rule, with its text and code.
#include "cli/host_report.hpp"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

RankFacts on_gpu(const std::string& host) {
  return {.host = host, .device = "H100", .is_gpu = true, .gpus = 2, .fingerprint = "kernels 1"};
}

RankFacts without_gpu(const std::string& host, int gpus, ExitCode code, const std::string& problem) {
  return {.host = host, .gpus = gpus, .problem = problem, .problem_code = code};
}

RankFacts on_cpu(const std::string& host, const std::string& processor) {
  return {.host = host, .device = processor, .fingerprint = "kernels 1"};
}

/// Two hosts with two GPUs of one model each.
std::vector<RankFacts> good() {
  return {on_gpu("a"), on_gpu("a"), on_gpu("b"), on_gpu("b")};
}

std::vector<std::string> texts(const std::vector<Verdict>& verdicts, ExitCode code) {
  std::vector<std::string> found;
  for (const Verdict& verdict : verdicts) {
    EXPECT_EQ(verdict.code, code) << verdict.text;
    found.push_back(verdict.text);
  }
  return found;
}

using Texts = std::vector<std::string>;

TEST(HostVerdicts, NothingIsWrongWithHostsThatAreAlike) {
  EXPECT_TRUE(judge_hosts(good(), 1e9, {.bytes_per_second = 1e9}).empty());
}

TEST(HostVerdicts, EveryRankNeedsAGpuWhereOneHasOne) {
  auto facts = good();
  facts[3] = without_gpu("b", 1, ExitCode::usage, "2 ranks and 1 visible there");
  facts.push_back(without_gpu("c", 0, ExitCode::configuration, "found no driver"));
  EXPECT_FALSE(can_compute(facts));
  EXPECT_EQ(texts(judge_hosts(facts, 0, {.bytes_per_second = 1e9}), ExitCode::usage),
            (Texts{"rank 3 on b: expected a GPU for each rank, found 1 there; all ranks of a job need the same kind of "
                   "device; see gpusPerNode and slots",
                   "rank 4 on c: expected a GPU for each rank, found 0 there; all ranks of a job need the same kind of "
                   "device; see gpusPerNode and slots"}));
}

TEST(HostVerdicts, WhatKeepsGpusFromComputingIsToldOnce) {
  const auto no_module = without_gpu("a", 0, ExitCode::configuration, "expected the CUDA module, found none");
  EXPECT_EQ(texts(judge_hosts({no_module, no_module}, 0, {}), ExitCode::configuration), Texts{no_module.problem});
  auto facts = good();
  facts[2] = facts[3] = without_gpu("b", 2, ExitCode::configuration, "expected a driver for CUDA 13.0");
  EXPECT_EQ(texts(judge_hosts(facts, 0, {}), ExitCode::configuration), Texts{facts[2].problem});
}

TEST(HostVerdicts, MixedGpusAreForJobsThatSaySo) {
  auto facts = good();
  facts[2].device = "T4";
  EXPECT_EQ(
      texts(judge_hosts(facts, 0, {}), ExitCode::usage),
      Texts{"rank 2 on b: expected H100, as on rank 0, found T4; use one kind of node, or set exact: preferred in "
            "the job"});
  EXPECT_TRUE(judge_hosts(facts, 0, {.one_kind = false}).empty());
}

TEST(HostVerdicts, ProcessorsMayHaveOtherNamesButNotOtherBits) {
  std::vector<RankFacts> facts = {on_cpu("a", "Xeon"), on_cpu("b", "EPYC")};
  EXPECT_TRUE(judge_hosts(facts, 0, {}).empty());
  facts[1].fingerprint = "kernels 2";
  EXPECT_EQ(texts(judge_hosts(facts, 0, {}), ExitCode::usage),
            Texts{"rank 1 on b: expected kernels 1, as on rank 0, found kernels 2; use one kind of node, or set exact: "
                  "preferred in the job"});
}

TEST(HostVerdicts, AClockIsToldOnceAHostAndOnlyWhereItIsSure) {
  auto facts = good();
  for (const std::size_t r : {2U, 3U}) {
    facts[r].clock_ahead = -7200;
    facts[r].clock_error = 0.001;
  }
  EXPECT_EQ(texts(judge_hosts(facts, 0, {}), ExitCode::infrastructure),
            Texts{"b: expected a clock within 1 s of that of a, found it 7200 s behind; synchronize the node's clock "
                  "(chrony)"});
  for (const std::size_t r : {2U, 3U}) facts[r].clock_error = 7199.5;
  EXPECT_TRUE(judge_hosts(facts, 0, {}).empty());
}

TEST(HostVerdicts, ASlowAllReduce) {
  EXPECT_EQ(texts(judge_hosts(good(), 2e9, {.bytes_per_second = 5e9}), ExitCode::infrastructure),
            Texts{"all-reduce: expected at least 5 GB/s, found 2 GB/s; see which network the ranks use "
                  "(network.profile, network.interface) and what else uses it"});
}

}  // namespace
}  // namespace lockstep::cli
