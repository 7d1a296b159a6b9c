// What ranks compare at the start: a rank that differs is named with its host, and only bits may differ if the job
// allows it.
#include "run/train/start_check.hpp"

#include <gtest/gtest.h>

#include <mutex>

#include "core/unfit_hosts.hpp"
#include "lockstep/error.hpp"

namespace lockstep::train {

namespace {

struct Heard {
  std::vector<std::string> errors, warnings;  // of all ranks
};

/// Three ranks on two hosts; rank 1, alone on the second one, has the values `odd`.
Heard compare(const std::vector<StartFact>& common, const std::vector<StartFact>& odd, bool exact_required) {
  Heard heard;
  std::mutex mutex;
  run_in_threads(3,
                 [&](Communicator& communicator) {
                   const auto& facts = communicator.rank() == 1 ? odd : common;
                   try {
                     auto warnings = compare_start(facts, exact_required, communicator, std::chrono::seconds(60));
                     const std::lock_guard lock(mutex);
                     heard.warnings.insert(heard.warnings.end(), warnings.begin(), warnings.end());
                   } catch (const Error& error) {
                     const std::lock_guard lock(mutex);
                     const auto* const unfit = dynamic_cast<const UnfitHosts*>(&error);
                     EXPECT_EQ(unfit == nullptr, !common.front().of_host);
                     if (unfit != nullptr) {
                       EXPECT_EQ(unfit->hosts(), std::vector{communicator.topology().host_name(1)});
                     }
                     heard.errors.emplace_back(error.what());
                   }
                 },
                 {0, 1, 0});
  return heard;
}

}  // namespace

TEST(StartCheck, EqualFactsPass) {
  const std::vector<StartFact> facts = {{"job", "abc", "fix it"}, {"fingerprint", "k1", "change it", true, "avx2"}};
  auto others = facts;
  others[1].detail = "avx512_core";  // reported, not compared
  const Heard heard = compare(facts, others, true);
  EXPECT_TRUE(heard.errors.empty());
  EXPECT_TRUE(heard.warnings.empty());
}

TEST(StartCheck, AStaleFileIsNamedWithItsHost) {
  const Heard heard = compare({{"data set", "abc", "copy the same data to every host"}},
                              {{"data set", "def", "copy the same data to every host"}}, false);
  ASSERT_EQ(heard.errors.size(), 3u);
  for (const auto& message : heard.errors) {
    EXPECT_TRUE(message.starts_with("rank 1 on ")) << message;
    EXPECT_TRUE(message.ends_with(": its data set differs: expected abc, found def; copy the same data to every host"))
        << message;
  }
}

TEST(StartCheck, AnotherFingerprintIsRefusedOrTold) {
  const std::vector<StartFact> common = {{"fingerprint", "k1", "set exact: preferred", true, "avx512_core"}},
                               odd = {{"fingerprint", "k2", "set exact: preferred", true, "avx2"}};
  const std::string said =
      ": its fingerprint differs: expected k1 (avx512_core), found k2 (avx2); set exact: preferred";
  const Heard refused = compare(common, odd, true), allowed = compare(common, odd, false);
  ASSERT_EQ(refused.errors.size(), 3u);
  EXPECT_TRUE(refused.errors[0].ends_with(said)) << refused.errors[0];
  EXPECT_TRUE(allowed.errors.empty());
  ASSERT_EQ(allowed.warnings.size(), 3u);
  EXPECT_TRUE(allowed.warnings[0].ends_with(said)) << allowed.warnings[0];
}

TEST(StartCheck, LongValuesAreComparedWhole) {
  const std::string text(300, 'a');
  const Heard heard = compare({{.name = "job", .value = text + "b", .of_host = false}},
                              {{.name = "job", .value = text + "c", .of_host = false}}, true);
  EXPECT_EQ(heard.errors.size(), 3u);
}

TEST(StartCheck, FingerprintsAgreeWhereOneLacksTheFirstMicroBatch) {
  const std::string cut = "kernels 1", uncut = "kernels 1, first micro-batch 2";
  EXPECT_EQ(agreed_fingerprint(cut, cut), cut);
  EXPECT_EQ(agreed_fingerprint(uncut, uncut), uncut);
  EXPECT_EQ(agreed_fingerprint(cut, uncut), uncut);
  EXPECT_EQ(agreed_fingerprint(uncut, cut), uncut);
  EXPECT_EQ(agreed_fingerprint(uncut, "kernels 1, first micro-batch 3"), std::nullopt);
  EXPECT_EQ(agreed_fingerprint(cut, "kernels 1, math 4"), std::nullopt);
  EXPECT_EQ(agreed_fingerprint(cut, "kernels 12, first micro-batch 2"), std::nullopt);
  EXPECT_EQ(agreed_fingerprint("kernels 12", uncut), std::nullopt);
  EXPECT_EQ(without_first_micro_batch(uncut), cut);
  EXPECT_EQ(without_first_micro_batch(cut), cut);
}

}  // namespace lockstep::train
