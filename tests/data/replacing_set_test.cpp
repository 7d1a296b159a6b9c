// Samples found bad when they are read: what replaces them, and how it is reported.
#include "data/replacing_set.hpp"

#include <gtest/gtest.h>

#include <set>

#include "data/fake_data.hpp"

namespace lockstep::data {
namespace {

/// Sample id contains the number id; those in `bad` cannot be decoded.
class FaultySet final : public CountingSet {
 public:
  FaultySet(std::int64_t size, std::set<std::int64_t> bad_ids) : CountingSet(size), bad_ids_(std::move(bad_ids)) {}
  void read(std::int64_t id, Sample& out) const override {
    if (bad_ids_.contains(id)) throw BadSample("imgs: " + name(id) + ": truncated JPEG");
    CountingSet::read(id, out);
  }

 private:
  std::set<std::int64_t> bad_ids_;
};

std::shared_ptr<const DataSet> replacing(std::int64_t size, std::set<std::int64_t> bad,
                                         const std::shared_ptr<ReplacedSamples>& replaced) {
  return with_bad_samples(std::make_shared<FaultySet>(size, std::move(bad)), BadWhenRead::replace, "train", replaced);
}

std::int32_t read(const DataSet& set, std::int64_t id) {
  Sample sample;
  set.read(id, sample);
  return sample[1].tensor.as<std::int32_t>()[0];
}

std::string read_error(const DataSet& set, std::int64_t id) {
  try {
    (void)read(set, id);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    return error.what();
  }
  return "";
}

TEST(ReplacingSet, TheNextGoodSampleTakesThePlace) {
  const auto replaced = std::make_shared<ReplacedSamples>();
  const auto set = replacing(6, {1, 2, 5}, replaced);
  const std::vector<std::int32_t> expected = {0, 3, 3, 3, 4, 0};  // after the last one comes the first
  for (std::int64_t id = 0; id < 6; ++id) EXPECT_EQ(read(*set, id), expected[static_cast<std::size_t>(id)]) << id;
}

TEST(ReplacingSet, EachIsToldOnce) {
  const auto replaced = std::make_shared<ReplacedSamples>();
  const auto set = replacing(6, {1, 4}, replaced);
  EXPECT_FALSE(replaced->any());
  for (const std::int64_t id : {4, 1, 0, 4, 1}) (void)read(*set, id);
  EXPECT_TRUE(replaced->any());
  const auto reported = replaced->take();
  ASSERT_EQ(reported.size(), 2U);
  EXPECT_EQ(reported[0].text(), "train: sample 1 is bad: imgs: #1: truncated JPEG; sample 2 (#2) takes its place");
  EXPECT_EQ(reported[1].text(), "train: sample 4 is bad: imgs: #4: truncated JPEG; sample 5 (#5) takes its place");
  (void)read(*set, 4);
  EXPECT_FALSE(replaced->any());
}

TEST(ReplacingSet, TooManyInARowAreNoAccident) {
  const auto replaced = std::make_shared<ReplacedSamples>();
  std::set<std::int64_t> bad;
  for (std::int64_t id = 10; id < 10 + kMaxBadInARow; ++id) bad.insert(id);
  const auto set = replacing(100, bad, replaced);
  EXPECT_EQ(read(*set, 11), 10 + kMaxBadInARow);
  EXPECT_EQ(read_error(*set, 10),
            "train: sample 10 and the 63 after it are all bad, too many to be replaced: imgs: #10: truncated JPEG");
  EXPECT_EQ(read_error(*replacing(2, {0, 1}, replaced), 1),
            "train: sample 1 and the 1 after it are all bad, too many to be replaced: imgs: #1: truncated JPEG");
}

TEST(ReplacingSet, StoppingSaysHowToGoOn) {
  const auto set = with_bad_samples(std::make_shared<FaultySet>(6, std::set<std::int64_t>{1}), BadWhenRead::stop,
                                    "train", std::make_shared<ReplacedSamples>());
  EXPECT_EQ(read(*set, 2), 2);
  EXPECT_EQ(
      read_error(*set, 1),
      "train: imgs: #1: truncated JPEG; repair it, or add data.bad_samples=replace: the run then goes on from its "
      "newest checkpoint with the next sample in its place");
}

// A file that cannot be opened or read may be available on another host.
TEST(ReplacingSet, OtherErrorsArePassedOn) {
  auto whole = std::make_shared<CountingSet>(6);
  whole->bad = 1;
  const auto replaced = std::make_shared<ReplacedSamples>();
  const auto set = with_bad_samples(whole, BadWhenRead::replace, "train", replaced);
  EXPECT_EQ(read_error(*set, 1), "sample 1 is bad");
  EXPECT_FALSE(replaced->any());
}

}  // namespace
}  // namespace lockstep::data
