#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "data/reader_support.hpp"
#include "data/split.hpp"

namespace lockstep::test {
namespace {

std::unique_ptr<DataSet> digits(std::int64_t count) {
  auto options = source(SourceKind::digits, {});
  options.count = count;
  return data::open(options);
}

std::vector<std::string> names(const DataSet& set) {
  std::vector<std::string> out;
  for (std::int64_t id = 0; id < set.size(); ++id) out.push_back(set.name(id));
  return out;
}

TEST(Split, AFractionIsDisjointCompleteAndOrdered) {
  const auto parts = data::split(digits(1000), {0.1, "", 7});
  EXPECT_EQ(parts.validation->size(), 100);
  EXPECT_EQ(parts.train->size(), 900);
  std::set<std::string> seen;
  for (const auto* part : {parts.train.get(), parts.validation.get()}) {
    std::int64_t before = -1;
    for (const auto& name : names(*part)) {
      EXPECT_TRUE(seen.insert(name).second);
      const std::int64_t id = std::stoll(name.substr(1));
      EXPECT_GT(id, before);
      before = id;
    }
  }
  EXPECT_EQ(seen.size(), 1000U);
}

TEST(Split, DependsOnTheSeedAlone) {
  const auto first = data::split(digits(200), {0.25, "", 3}), again = data::split(digits(200), {0.25, "", 3});
  const auto other = data::split(digits(200), {0.25, "", 4});
  EXPECT_EQ(names(*first.validation), names(*again.validation));
  EXPECT_NE(names(*first.validation), names(*other.validation));
  EXPECT_EQ(first.train->info().digest, again.train->info().digest);
  EXPECT_NE(first.train->info().digest, other.train->info().digest);
}

TEST(Split, AStratifiedFractionTakesItsShareOfEachClass) {
  const std::shared_ptr<const DataSet> whole = digits(1000);
  const auto parts = data::split(whole, {.fraction = 0.1, .seed = 7, .stratify = true});
  EXPECT_EQ(parts.validation->size(), 100);
  for (std::size_t c = 0; c < 10; ++c) {
    const double share = 0.1 * static_cast<double>(whole->info().class_counts[c]);
    EXPECT_LT(std::abs(static_cast<double>(parts.validation->info().class_counts[c]) - share), 1) << c;
  }
  const auto again = data::split(whole, {.fraction = 0.1, .seed = 7, .stratify = true});
  EXPECT_EQ(names(*again.validation), names(*parts.validation));
  const auto plain = data::split(whole, {.fraction = 0.1, .seed = 7});
  EXPECT_NE(names(*plain.validation), names(*parts.validation));
}

TEST(Split, EachSampleIsInExactlyOneFold) {
  const std::shared_ptr<const DataSet> whole = digits(103);
  for (const bool stratify : {false, true}) {
    std::multiset<std::string> seen;
    for (std::int64_t number = 1; number <= 5; ++number) {
      const auto parts = data::split(whole, {.seed = 3, .fold = {number, 5}, .stratify = stratify});
      EXPECT_EQ(parts.train->size() + parts.validation->size(), 103);
      EXPECT_TRUE(parts.validation->size() == 20 || parts.validation->size() == 21);
      for (const auto& name : names(*parts.validation)) seen.insert(name);
      for (std::size_t c = 0; stratify && c < 10; ++c) {
        const double share = static_cast<double>(whole->info().class_counts[c]) / 5;
        EXPECT_LT(std::abs(static_cast<double>(parts.validation->info().class_counts[c]) - share), 1) << c;
      }
    }
    EXPECT_EQ(seen.size(), 103U);
    EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 103U);
  }
}

TEST(Split, FoldsDependOnTheSeedAndAreStratifiedWhereThereAreClasses) {
  const auto fold = [](std::uint64_t seed, std::optional<bool> stratify) {
    return names(*data::split(digits(100), {.seed = seed, .fold = {1, 4}, .stratify = stratify}).validation);
  };
  EXPECT_EQ(fold(3, {}), fold(3, true));
  EXPECT_NE(fold(3, {}), fold(3, false));
  EXPECT_NE(fold(3, {}), fold(4, {}));
}

TEST(Bootstrap, IsAFunctionOfTheSeedAndDrawsWithReplacement) {
  const std::shared_ptr<const DataSet> whole = digits(1000);
  const auto drawn = data::bootstrap(whole, 3), again = data::bootstrap(whole, 3), other = data::bootstrap(whole, 4);
  EXPECT_EQ(drawn->size(), 1000);
  EXPECT_EQ(names(*drawn), names(*again));
  EXPECT_EQ(drawn->info().digest, again->info().digest);
  EXPECT_NE(names(*drawn), names(*other));
  EXPECT_NE(drawn->info().digest, other->info().digest);
  const auto all = names(*drawn);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::stoll(a.substr(1)) < std::stoll(b.substr(1));
  }));
  // A share of 1 - 1/e = 0.632 is drawn at least once; its standard deviation is about 0.01.
  const double distinct = static_cast<double>(std::set(all.begin(), all.end()).size()) / 1000;
  EXPECT_NEAR(distinct, 0.632, 0.04);
  std::int64_t counted = 0;
  for (const auto count : drawn->info().class_counts) counted += count;
  EXPECT_EQ(counted, 1000);
}

TEST(Split, CountsAreThePartsOwn) {
  const auto parts = data::split(digits(200), {0.25, "", 3});
  std::int64_t sum = 0;
  for (const auto count : parts.validation->info().class_counts) sum += count;
  EXPECT_EQ(sum, 50);
}

TEST(Split, ByAListOfNamesAndNumbers) {
  const TemporaryFolder folder;
  write_folder(folder / "data",
               {{"a/1.png", png(2, 2, 1, 1)}, {"a/2.png", png(2, 2, 1, 2)}, {"b/3.png", png(2, 2, 1, 3)}});
  write_file(folder / "list", "a/2.png\r\n\n2\n");
  const auto parts = data::split(data::open(source(SourceKind::images, {folder / "data"})), {0, folder / "list", 1});
  EXPECT_EQ(names(*parts.train), (std::vector<std::string>{"a/1.png"}));
  EXPECT_EQ(names(*parts.validation), (std::vector<std::string>{"a/2.png", "b/3.png"}));
  Sample sample;
  parts.validation->read(0, sample);
  EXPECT_EQ(bytes_of(sample[0].tensor), picture(2, 2, 1, 2));
}

TEST(SplitErrors, ExactWords) {
  const TemporaryFolder folder;
  const auto list_error = [&](const std::string& lines) {
    write_file(folder / "list", lines);
    return without(message_of(ExitCode::data,
                              [&] {
                                (void)data::split(digits(10), {0, folder / "list", 1});
                              }),
                   folder.path());
  };
  const std::string source = digits(10)->info().source;
  EXPECT_EQ(list_error("1\ncat\n"),
            "list:2: 'cat' is no sample of " + source + "; expected a name such as '#0', or a number below 10");
  EXPECT_EQ(list_error("10\n"),
            "list:1: '10' is no sample of " + source + "; expected a name such as '#0', or a number below 10");
  EXPECT_EQ(list_error("\n"), "list: 10 samples for training and 0 for validation; each needs one at least");
  EXPECT_EQ(message_of(ExitCode::configuration,
                       [&] {
                         (void)data::split(digits(10), {0.01, "", 1});
                       }),
            source + ": 10 samples for training and 0 for validation; each needs one at least");
  EXPECT_EQ(message_of(ExitCode::configuration,
                       [&] {
                         (void)data::split(digits(10), {1.5, "", 1});
                       }),
            "a validation fraction of 1.5; expected more than 0 and less than 1");
  const TemporaryFolder texts;
  write_file(texts / "a.txt", "some words to read, window by window");
  auto text = test::source(SourceKind::text, {texts / "a.txt"});
  text.context = 4;
  EXPECT_EQ(without(message_of(ExitCode::configuration,
                               [&] {
                                 (void)data::split(data::open(text), {.fold = {1, 2}});
                               }),
                    texts.path()),
            "a.txt: text is split by a fraction of its length; it has no classes, and is not cut into folds");
}

}  // namespace
}  // namespace lockstep::test
