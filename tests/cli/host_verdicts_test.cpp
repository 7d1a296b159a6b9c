// What is wrong with hosts: each rule, with its text and code.
#include "cli/host_verdicts.hpp"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

RankFacts rank_on(const std::string& host, const std::string& device, int gpus, int local_rank) {
  return {.host = host, .device = device, .gpus = gpus, .local_rank = local_rank, .fingerprint = "kernels 1"};
}

/// Two hosts with two GPUs of one model each.
std::vector<RankFacts> good() {
  return {rank_on("a", "H100", 2, 0), rank_on("a", "H100", 2, 1), rank_on("b", "H100", 2, 0),
          rank_on("b", "H100", 2, 1)};
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
  facts[3] = rank_on("b", "Xeon", 1, 1);
  facts.push_back(rank_on("c", "Xeon", 0, 0));
  EXPECT_EQ(
      texts(judge_hosts(facts, 0, {}), ExitCode::usage),
      (Texts{"rank 3 on b: expected a GPU for each rank, found 1 there; all ranks of a job are of one device kind: "
             "see gpusPerNode and slots",
             "rank 4 on c: expected a GPU for each rank, found 0 there; all ranks of a job are of one device kind: "
             "see gpusPerNode and slots"}));
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
  std::vector<RankFacts> facts = {rank_on("a", "Xeon", 0, 0), rank_on("b", "EPYC", 0, 0)};
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
  EXPECT_EQ(
      texts(judge_hosts(facts, 0, {}), ExitCode::infrastructure),
      Texts{"b: expected a clock within 1 s of that of a, found it 7200 s behind; let the node set its clock by the "
            "network (chrony)"});
  for (const std::size_t r : {2U, 3U}) facts[r].clock_error = 7199.5;
  EXPECT_TRUE(judge_hosts(facts, 0, {}).empty());
}

TEST(HostVerdicts, ASlowExchange) {
  EXPECT_EQ(texts(judge_hosts(good(), 2e9, {.bytes_per_second = 5e9}), ExitCode::infrastructure),
            Texts{"exchange: expected at least 5 GB/s, found 2 GB/s; see which network the ranks use (network.profile, "
                  "network.interface) and who else does"});
}

}  // namespace
}  // namespace lockstep::cli
