#include "data/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "data/digits.hpp"
#include "data/fake_data.hpp"

namespace lockstep::data {

namespace {

/// Images [1, 1, channels], by default of (id, 2 id, 7).
class ColourSet final : public CountingSet {
 public:
  explicit ColourSet(std::int64_t size, std::int64_t channels = 3) : CountingSet(size) {
    info_.features = {{"image", Feature::Kind::image, {DType::u8, {1, 1, channels}}}};
    info_.digest = "0123456789abcdef0123456789abcdef";
  }
  void read(std::int64_t id, Sample& out) const override {
    ++reads;
    out.resize(1);
    out[0] = {"image", Tensor(info_.features[0].spec)};
    const auto pixel = out[0].tensor.as<std::uint8_t>();
    pixel[0] = static_cast<std::uint8_t>(id);
    if (pixel.size() < 3) return;
    pixel[1] = static_cast<std::uint8_t>(2 * id);
    pixel[2] = 7;
  }
};

}  // namespace

TEST(Statistics, AreWhatTheFormulaSays) {
  const ColourSet set(100);
  const auto result = channel_statistics(set, {});
  const double stddev = std::sqrt((100.0 * 100 - 1) / 12);
  EXPECT_NEAR(result.mean[0], 49.5 / 255, 1e-12);
  EXPECT_NEAR(result.mean[1], 99.0 / 255, 1e-12);
  EXPECT_NEAR(result.stddev[0], stddev / 255, 1e-12);
  EXPECT_NEAR(result.stddev[1], 2 * stddev / 255, 1e-12);
  EXPECT_NEAR(result.mean[2], 7.0 / 255, 1e-12);
  EXPECT_EQ(result.stddev[2], 1);  // never varies
}

TEST(Statistics, DoNotDependOnThreads) {
  const ColourSet set(101);
  const auto one = channel_statistics(set, {.threads = 1});
  const auto three = channel_statistics(set, {.threads = 3});
  EXPECT_EQ(one.mean, three.mean);
  EXPECT_EQ(one.stddev, three.stddev);
}

TEST(Statistics, AreNoted) {
  const ColourSet set(50);
  IndexNotes notes;
  const auto first = channel_statistics(set, {.notes = &notes});
  EXPECT_EQ(set.reads, 50);
  const auto second = channel_statistics(set, {.notes = &notes});
  EXPECT_EQ(set.reads, 50);
  EXPECT_EQ(first.mean, second.mean);
  EXPECT_EQ(first.stddev, second.stddev);
  EXPECT_EQ(channel_statistics(set, {.max_samples = 10, .notes = &notes}).mean.size(), 3U);
  EXPECT_EQ(set.reads, 60) << "of fewer samples is another note";
  // The same files, opened for a model of gray images.
  EXPECT_EQ(channel_statistics(ColourSet(50, 1), {.notes = &notes}).mean.size(), 1U);
  EXPECT_EQ(channel_statistics(set, {.notes = &notes}).mean, first.mean);
}

TEST(Statistics, LargeSetsAreSampled) {
  const ColourSet set(200);
  static_cast<void>(channel_statistics(set, {.max_samples = 20}));
  EXPECT_EQ(set.reads, 20);
}

TEST(Statistics, DigitsKnowTheirOwn) {
  auto set = make_digits(5000);
  const auto said = channel_statistics(*set, {});
  const_cast<DataSetInfo&>(set->info()).mean.clear();
  const auto measured = channel_statistics(*set, {});
  EXPECT_NEAR(said.mean[0], measured.mean[0], 0.003);
  EXPECT_NEAR(said.stddev[0], measured.stddev[0], 0.003);
}

}  // namespace lockstep::data
