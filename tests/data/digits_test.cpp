#include "data/digits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/digest.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

namespace {

std::string digest_of(const DataSet& set, std::int64_t id) {
  Sample sample;
  set.read(id, sample);
  Sha256 sha;
  for (const NamedTensor& part : sample) sha.add({part.tensor.bytes(), part.tensor.spec().bytes()});
  return sha.hex().substr(0, 16);
}

}  // namespace

// The bits of the digits are promised: a run on them has the same result on every machine and in every version.
TEST(Digits, BitsAreKnown) {
  const auto set = make_digits(60000);
  EXPECT_EQ(digest_of(*set, 0), "09d0b5c9e835fa4b");
  EXPECT_EQ(digest_of(*set, 1), "127df3591c82814e");
  EXPECT_EQ(digest_of(*set, 59999), "ee8fe1a832c0e513");
  EXPECT_EQ(digest_of(*make_digits(1, std::int64_t{1} << 40), 0), "3f3732fae48e7f03");
  EXPECT_EQ(digest_of(*make_digits(1, 0, {.pairs = true}), 0), "84435336c18b64a8");
}

TEST(Digits, SampleDependsOnItsNumberOnly) {
  EXPECT_EQ(digest_of(*make_digits(100, 0), 70), digest_of(*make_digits(40, 50), 20));
  EXPECT_NE(digest_of(*make_digits(100, 0), 70), digest_of(*make_digits(100, 0), 71));
  EXPECT_EQ(digest_of(*make_digits(100, 0, {.pairs = true}), 70), digest_of(*make_digits(40, 50, {.pairs = true}), 20));
}

TEST(Digits, DigestNamesTheSet) {
  EXPECT_EQ(make_digits(10)->info().digest, make_digits(10)->info().digest);
  EXPECT_NE(make_digits(10)->info().digest, make_digits(10, 1)->info().digest);
  EXPECT_NE(make_digits(10)->info().digest, make_digits(10, 0, {.pairs = true})->info().digest);
}

TEST(Digits, ClassesAreBalancedAndCounted) {
  const auto set = make_digits(10000);
  std::vector<std::int64_t> counts(10);
  for (std::int64_t id = 0; id < set->size(); ++id) ++counts[static_cast<std::size_t>(set->label(id))];
  EXPECT_EQ(counts, set->info().class_counts);
  EXPECT_GT(*std::min_element(counts.begin(), counts.end()), 880);
  EXPECT_LT(*std::max_element(counts.begin(), counts.end()), 1120);  // four standard deviations
}

TEST(Digits, HaveInkAndLabel) {
  const auto set = make_digits(300);
  Sample sample;
  for (std::int64_t id = 0; id < set->size(); ++id) {
    set->read(id, sample);
    ASSERT_EQ(sample[1].tensor.as<std::int32_t>()[0], set->label(id));
    const auto pixels = sample[0].tensor.as<std::uint8_t>();
    const auto bright = std::count_if(pixels.begin(), pixels.end(), [](std::uint8_t p) { return p > 100; });
    EXPECT_GT(bright, 5) << id;
    EXPECT_LT(bright, 350) << id;
  }
}

TEST(Digits, HalfOfThePairsAreEqual) {
  const auto set = make_digits(4000, 0, {.pairs = true});
  EXPECT_EQ(set->info().features.size(), 3U);
  EXPECT_NEAR(static_cast<double>(set->info().class_counts[1]), 2000, 150);
  Sample sample;
  set->read(7, sample);
  EXPECT_EQ(sample[0].name, "left");
  EXPECT_EQ(sample[1].name, "right");
  EXPECT_EQ(sample[2].tensor.as<std::int32_t>()[0], set->label(7));
}

TEST(Digits, MasksAreWhereTheInkIs) {
  const auto plain = make_digits(40), masked = make_digits(40, 0, {.masks = true});
  EXPECT_EQ(masked->info().features.size(), 3U);
  EXPECT_EQ(digest_of(*masked, 0), "647acb30187f6c2f");
  Sample without, with;
  for (std::int64_t id = 0; id < masked->size(); ++id) {
    plain->read(id, without);
    masked->read(id, with);
    EXPECT_EQ(with[1].name, "mask");
    EXPECT_EQ(with[2].tensor.as<std::int32_t>()[0], masked->label(id));
    const auto pixels = with[0].tensor.as<std::uint8_t>(), mask = with[1].tensor.as<std::uint8_t>();
    ASSERT_TRUE(std::equal(pixels.begin(), pixels.end(), without[0].tensor.as<std::uint8_t>().begin()));
    double ink = 0, paper = 0, inked = 0;
    for (std::size_t i = 0; i < mask.size(); ++i) {
      ASSERT_TRUE(mask[i] == 0 || mask[i] == 255);
      (mask[i] == 255 ? ink : paper) += pixels[i];
      inked += mask[i] == 255 ? 1 : 0;
    }
    ASSERT_GT(inked, 5) << id;
    EXPECT_GT(ink / inked, 3 * paper / (784 - inked)) << id;
  }
}

TEST(Digits, PairsHaveNoMasks) {
  try {
    static_cast<void>(make_digits(1, 0, {.pairs = true, .masks = true}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_STREQ(error.what(), "digits: expected pairs or masks, found both; a mask belongs to a sample of one image");
  }
}

TEST(Digits, GroupsShowOneDigitAndAnother) {
  const auto pairs = make_digits(300, 0, {.pairs = true, .same = true}),
             triplets = make_digits(300, 0, {.triplets = true});
  EXPECT_EQ(pairs->info().features.size(), 3U);
  EXPECT_EQ(triplets->info().features.size(), 4U);
  EXPECT_EQ(pairs->info().class_names.size(), 10U);
  Sample sample;
  for (const auto* set : {pairs.get(), triplets.get()}) {
    for (std::int64_t id = 0; id < 300; ++id) {
      set->read(id, sample);
      ASSERT_EQ(sample.back().tensor.as<std::int32_t>()[0], set->label(id));
    }
    for (const auto count : set->info().class_counts) EXPECT_GT(count, 10);
  }
  EXPECT_EQ(sample[0].name, "anchor");
  EXPECT_EQ(sample[2].name, "negative");
  const auto first = sample[0].tensor.as<std::uint8_t>(), second = sample[1].tensor.as<std::uint8_t>();
  EXPECT_FALSE(std::equal(first.begin(), first.end(), second.begin())) << "another drawing of the digit";
}

TEST(Digits, GroupsAreOfOneKind) {
  const auto refused = [](const DigitForm& form) -> std::string {
    try {
      static_cast<void>(make_digits(1, 0, form));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::configuration);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refused({.masks = true, .triplets = true}),
            "digits: expected triplets, or pairs or masks, found both; leave one out");
  EXPECT_EQ(refused({.same = true}), "digits: expected same beside pairs: true, found it without; add pairs: true");
}

TEST(Digits, RefusesAnEmptySet) {
  try {
    static_cast<void>(make_digits(0));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_STREQ(error.what(), "digits: expected a count of at least 1 and a first of at least 0, found 0 and 0");
  }
}

}  // namespace lockstep::data
