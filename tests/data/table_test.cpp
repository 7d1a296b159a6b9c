// Tables: what a column is taken for, what becomes of its values, and what is refused, with row and column.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "data/augment.hpp"
#include "data/open.hpp"
#include "data/reader_support.hpp"
#include "data/readers/table_values.hpp"
#include "data/split.hpp"
#include "data/statistics.hpp"
#include "lockstep/error.hpp"

namespace lockstep::test {

namespace {

using data::channel_statistics;
using data::make_view;
using data::open;

constexpr const char* kHouses =
    "area,kind,year,price\n"
    "50,flat,1990,100\n"
    "70,house,,200\n"
    "90,flat,2010,300\n"
    "110, villa ,NA,400\n";

class TableTest : public testing::Test {
 protected:
  [[nodiscard]] SourceOptions table(const std::string& text, std::vector<std::string> target = {"price"}) {
    const std::string path = folder_ / ("t" + std::to_string(files_++) + ".csv");
    write_file(path, text);
    SourceOptions options;
    options.kind = SourceKind::table;
    options.paths = {path};
    options.target = std::move(target);
    return options;
  }
  [[nodiscard]] std::string refusal(const SourceOptions& options, const DataSetInfo* like = nullptr) const {
    return without(message_of(ExitCode::data, [&] { (void)open(options, {.like = like}); }), folder_.path());
  }

  TemporaryFolder folder_;
  int files_ = 0;
};

std::vector<double> row_of(const DataSet& set, std::int64_t id) {
  Sample sample;
  set.read(id, sample);
  const auto values = sample.at(0).tensor.as<double>();
  return {values.begin(), values.end()};
}

}  // namespace

TEST_F(TableTest, IndexingTellsWhatTargetsRangeOver) {
  const auto ranges = [&](const SourceOptions& options) {
    std::vector<data::TargetRange> found;
    (void)open(options, {.targets = &found});
    std::string text;
    for (const auto& range : found) {
      text += range.feature + " " + (range.column.empty() ? "sum" : range.column) + ": " +
              std::to_string(range.lowest) + " in " + without(range.lowest_at, folder_.path()) + ", " +
              std::to_string(range.highest) + " in " + without(range.highest_at, folder_.path()) + "\n";
    }
    return text;
  };
  EXPECT_EQ(ranges(table(kHouses)), "label price: 100.000000 in t0.csv:2, 400.000000 in t0.csv:5\n");
  EXPECT_EQ(ranges(table("x,a,b\n1,0.5,0\n2,-1,0.25\n3,0.5,3\n", {"a", "b"})),
            "label a: -1.000000 in t1.csv:3, 0.500000 in t1.csv:2\n"
            "label b: 0.000000 in t1.csv:2, 3.000000 in t1.csv:4\n"
            "label sum: -0.750000 in t1.csv:3, 3.500000 in t1.csv:4\n");
  SourceOptions apart = table("x,kind,a,b\n1,cat,4,0\n2,dog,6,1\n", {"kind", "a", "b"});
  apart.targets_apart = true;
  EXPECT_EQ(ranges(apart),
            "a a: 4.000000 in t2.csv:2, 6.000000 in t2.csv:3\nb b: 0.000000 in t2.csv:2, 1.000000 in t2.csv:3\n");
  EXPECT_EQ(ranges(table(kHouses, {"kind"})), "") << "classes";
}

TEST_F(TableTest, ColumnsAreNumbersOrCategories) {
  const auto set = open(table(kHouses));
  const DataSetInfo& info = set->info();
  ASSERT_EQ(info.columns.size(), 3U);
  EXPECT_TRUE(info.columns[0].categories.empty());
  EXPECT_EQ(info.columns[1].categories, (std::vector<std::string>{"flat", "house", "villa"}));
  EXPECT_TRUE(info.columns[2].missing);
  EXPECT_FALSE(info.columns[0].missing);
  ASSERT_EQ(info.features.size(), 2U);
  EXPECT_EQ(info.features[0].spec, (TensorSpec{DType::f64, {6}}));
  EXPECT_EQ(info.features[1].spec, (TensorSpec{DType::f32, {}}));
  EXPECT_EQ(row_of(*set, 0), (std::vector<double>{50, 1, 0, 0, 1990, 0}));
  const auto missing = row_of(*set, 3);
  EXPECT_EQ(std::vector<double>(missing.begin(), missing.begin() + 4), (std::vector<double>{110, 0, 0, 1}));
  EXPECT_TRUE(std::isnan(missing[4]));
  EXPECT_EQ(missing[5], 1);
  Sample sample;
  set->read(2, sample);
  EXPECT_EQ(sample[1].tensor.as<float>()[0], 300);
}

TEST_F(TableTest, StatisticsAreOfTheTrainingPartAndOfNumbersOnly) {
  const std::shared_ptr<const DataSet> whole = open(table(kHouses));
  const std::vector<std::int64_t> first = {0, 1};
  const auto part = make_view(open(table(kHouses)), first);
  const auto of_whole = channel_statistics(*whole, {}), of_part = channel_statistics(*part, {});
  EXPECT_DOUBLE_EQ(of_whole.mean[0], 80);
  EXPECT_DOUBLE_EQ(of_whole.stddev[0], std::sqrt(500));
  EXPECT_DOUBLE_EQ(of_part.mean[0], 60);
  EXPECT_DOUBLE_EQ(of_part.stddev[0], 10);
  EXPECT_DOUBLE_EQ(of_whole.mean[4], 2000) << "of the years that there are";
  for (const std::size_t category : {1, 2, 3, 5}) {
    EXPECT_EQ(of_whole.mean[category], 0);
    EXPECT_EQ(of_whole.stddev[category], 1);
  }
}

TEST_F(TableTest, StatisticsOfTargetsAreByNumber) {
  const auto set = open(table("x,a,kind,b\n1,2,p,5\n2,4,q,5\n", {"b", "a"}));
  const auto statistics = data::target_statistics(*set);
  ASSERT_EQ(statistics.size(), 1U);
  EXPECT_EQ(statistics.at("label").mean, (std::vector<double>{5, 3}));
  EXPECT_EQ(statistics.at("label").stddev, (std::vector<double>{1, 1})) << "of a constant one 1";
  EXPECT_TRUE(data::target_statistics(*open(table("x,kind\n1,p\n2,q\n", {"kind"}))).empty());
}

TEST_F(TableTest, ThePipelineNormalisesAndFillsWhatIsMissing) {
  const auto set = open(table(kHouses));
  const auto statistics = channel_statistics(*set, {});
  data::PipelineOptions options;
  options.mean = statistics.mean;
  options.stddev = statistics.stddev;
  const AugmentRegistry none;
  const data::Pipeline pipeline(set->info().features, options, none);
  Sample sample;
  set->read(3, sample);
  std::vector<float> row(6), label(1);
  data::PipelineScratch scratch;
  const std::vector<std::byte*> outputs = {reinterpret_cast<std::byte*>(row.data()),
                                           reinterpret_cast<std::byte*>(label.data())};
  pipeline.run(sample, 3, 0, scratch, outputs);
  EXPECT_NEAR(static_cast<double>(row[0]), 30 / std::sqrt(500), 1e-6);
  EXPECT_EQ(std::vector<float>(row.begin() + 1, row.end()), (std::vector<float>{0, 0, 1, 0, 1}));
  EXPECT_EQ(label[0], 400);
}

TEST_F(TableTest, TextsAndCategoricalNumbersAreClasses) {
  const auto texts = open(table("x,answer\n1,yes\n2,no\n3,yes\n", {"answer"}));
  EXPECT_EQ(texts->info().class_names, (std::vector<std::string>{"no", "yes"}));
  EXPECT_EQ(texts->info().class_counts, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(texts->label(0), 1);
  SourceOptions numbers = table("x,answer\n1,10\n2,9\n3,10\n", {"answer"});
  EXPECT_TRUE(open(numbers)->info().class_names.empty());
  numbers.categorical = {"answer"};
  EXPECT_EQ(open(numbers)->info().class_names, (std::vector<std::string>{"9", "10"})) << "in the order of numbers";
}

TEST_F(TableTest, SeveralTargetsAndSomeFeatures) {
  SourceOptions options = table("a,b,c,d\n1,2,3,4\n5,6,7,8\n", {"d", "a"});
  options.features = {"c"};
  const auto set = open(options);
  EXPECT_EQ(set->info().features[1].spec, (TensorSpec{DType::f32, {2}}));
  Sample sample;
  set->read(1, sample);
  EXPECT_EQ(sample[0].tensor.as<double>()[0], 7);
  EXPECT_EQ(sample[1].tensor.as<float>()[0], 8);
  EXPECT_EQ(sample[1].tensor.as<float>()[1], 5);
}

TEST_F(TableTest, PatternsStandForColumnsButNotForTargets) {
  SourceOptions options = table("p1,q,p2,p_end\n1,2,3,4\n5,6,7,8\n", {"p_end"});
  options.features = {"p*"};
  options.categorical = {"p[2-9]"};
  const auto set = open(options);
  EXPECT_EQ(set->info().features[0].spec, (TensorSpec{DType::f64, {3}}));
  EXPECT_EQ(row_of(*set, 1), (std::vector<double>{5, 0, 1}));
  options.features = {"r*"};
  EXPECT_EQ(refusal(options), "t0.csv:1: expected columns that 'r*' matches, beside p_end, found p1, q, p2, p_end");
  options.features = {"p2", "p*"};
  EXPECT_EQ(open(options)->info().features[0].spec, (TensorSpec{DType::f64, {3}})) << "each column once";
}

TEST_F(TableTest, PatternsStandForTargets) {
  SourceOptions options = table("price_a,x,price_b,price_w\n1,2,3,4\n5,6,7,8\n", {"price_*"});
  options.weight = "price_w";
  const auto set = open(options);
  EXPECT_EQ(set->info().features[0].spec, (TensorSpec{DType::f64, {1}})) << "x";
  EXPECT_EQ(set->info().features[1].spec, (TensorSpec{DType::f32, {2}}));
  EXPECT_EQ(set->info().features[1].classes, (std::vector<std::string>{"price_a", "price_b"}));
  SourceOptions by_name = options;
  by_name.target = {"price_a", "price_b"};
  EXPECT_EQ(open(by_name)->info().digest, set->info().digest);
  Sample sample;
  set->read(1, sample);
  EXPECT_EQ(sample[1].tensor.as<float>()[0], 5);
  EXPECT_EQ(sample[1].tensor.as<float>()[1], 7);

  const auto other = open(table("price_b,price_a,x,price_c\n1,2,3,4\n", {"price_*"}), {.like = &set->info()});
  other->read(0, sample);
  EXPECT_EQ(sample[1].tensor.as<float>()[0], 2) << "the targets of the training set, in its order";
  EXPECT_EQ(sample[1].tensor.as<float>()[1], 1);

  options.targets_apart = true;
  EXPECT_EQ(open(options)->info().features[2].name, "price_b");
  options.target = {"cost_*"};
  EXPECT_EQ(refusal(options),
            "t0.csv:1: expected columns that 'cost_*' matches, beside price_w, found price_a, x, price_b, price_w");
  EXPECT_EQ(refusal(table("a,b\n1,2\n", {"c*"})), "t2.csv:1: expected columns that 'c*' matches, found a, b");
  EXPECT_EQ(refusal(table("a,b\n1,2\n", {"?"})), "t3.csv: expected columns beside the target, found none");
}

TEST_F(TableTest, AnotherSetHasTheColumnsOfTheTrainingSet) {
  const auto train = open(table(kHouses));
  const auto other = open(table("kind,price,area,year\nvilla,7,55,\n,8,,1999\n"), {.like = &train->info()});
  EXPECT_EQ(row_of(*other, 0)[0], 55);
  EXPECT_EQ(row_of(*other, 0)[3], 1);
  const auto filled = row_of(*other, 1);
  EXPECT_TRUE(std::isnan(filled[0]));
  EXPECT_EQ(std::vector<double>(filled.begin() + 1, filled.end()), (std::vector<double>{0, 0, 0, 1999, 0}));
  EXPECT_EQ(other->info().warnings.size(), 2U) << "of area and kind, in which training misses nothing";
  EXPECT_EQ(refusal(table("area,kind,year,price\n1,barn,2000,5\n"), &train->info()),
            "t2.csv: 1 of 1 samples is bad: t2.csv:2: column 'kind': expected one of flat, house, villa, as in the "
            "training set, found 'barn', which `unknown: ignore` takes for none of them. Repair or remove them, or say "
            "`bad_samples: skip`");
  EXPECT_EQ(refusal(table("area,kind,price\n1,flat,5\n"), &train->info()),
            "t3.csv:1: expected a column 'year', found area, kind, price");
}

TEST_F(TableTest, RowsToPredictForHaveNoTarget) {
  const auto train = open(table(kHouses));
  const auto rows = open(table("area,kind,year\n50,flat,1990\n", {}), {.like = &train->info()});
  EXPECT_EQ(rows->info().features.size(), 1U);
  EXPECT_EQ(row_of(*rows, 0), row_of(*train, 0));
}

TEST_F(TableTest, BadRowsAreNamedOrSkipped) {
  SourceOptions options = table("a,price\n1,2\nten,3\n4,\n5,6\n1e99,7\n");
  EXPECT_EQ(
      refusal(options),
      "t0.csv: 3 of 5 samples are bad: t0.csv:3: column 'a': expected a number, as in the other rows, found 'ten'; "
      "or add the column to `categorical`; t0.csv:4: column 'price': expected a target, found nothing; t0.csv:6: "
      "column 'a': expected a number that fp32 can hold, found '1e99'. Repair or remove them, or say "
      "`bad_samples: skip`");
  options.bad_samples = BadWhenIndexed::skip;
  const auto set = open(options);
  EXPECT_EQ(set->size(), 2);
  EXPECT_EQ(set->info().skipped.size(), 3U);
  EXPECT_TRUE(set->name(1).ends_with("t0.csv:5"));
}

TEST_F(TableTest, TheDigestIsOfValuesAndOfWhatTheyAreTakenFor) {
  SourceOptions options = table("a,b,price\n1,2,3\n4,5,6\n");
  const std::string digest = open(options)->info().digest;
  EXPECT_EQ(open(table("a,b,price\n1.0,2,3\n4,5,6\n"))->info().digest, digest) << "1.0 is 1";
  EXPECT_NE(open(table("a,b,price\n1,2,3\n4,5,7\n"))->info().digest, digest);
  options.categorical = {"a"};
  EXPECT_NE(open(options)->info().digest, digest);
}

TEST_F(TableTest, TargetsApartAreAFeatureEach) {
  SourceOptions options =
      table("x,kind,price,size,w\n1,b,10,3,1\n2,a,20,4,2\n3,b,30,5,0.5\n", {"kind", "price", "size"});
  options.weight = "w";
  EXPECT_EQ(
      refusal(options),
      "t0.csv: column 'kind': expected numbers, since there are 3 targets, found texts; to predict both, give each "
      "target a loss of its own");
  options.targets_apart = true;
  const auto set = open(options);
  const DataSetInfo& info = set->info();
  ASSERT_EQ(info.features.size(), 5U);
  EXPECT_EQ(info.features[1].name, "kind");
  EXPECT_EQ(info.features[1].kind, Feature::Kind::label);
  EXPECT_EQ(info.features[1].classes, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(info.features[3].name, "size");
  EXPECT_EQ(info.features[3].spec, (TensorSpec{DType::f32, {}}));
  EXPECT_TRUE(info.class_names.empty()) << "no target is the sample's class";
  EXPECT_EQ(set->label(1), -1);
  Sample sample;
  set->read(2, sample);
  EXPECT_EQ(sample[0].tensor.as<double>()[0], 3);
  EXPECT_EQ(sample[1].tensor.as<std::int32_t>()[0], 1);
  EXPECT_EQ(sample[2].tensor.as<float>()[0], 30);
  EXPECT_EQ(sample[3].tensor.as<float>()[0], 5);
  EXPECT_EQ(sample[4].tensor.as<float>()[0], 0.5F);

  SourceOptions other = table("x,kind,price,size\n1,a,10,3\n", {"kind", "price", "size"});
  other.targets_apart = true;
  const auto validation = open(other, {.like = &info});
  validation->read(0, sample);
  EXPECT_EQ(sample[1].tensor.as<std::int32_t>()[0], 0) << "numbered as in training";
  other.target = {"price", "kind", "size"};
  open(other, {.like = &info})->read(0, sample);
  EXPECT_EQ(sample[1].tensor.as<std::int32_t>()[0], 0) << "in the order of training";
  EXPECT_EQ(sample[2].tensor.as<float>()[0], 10);
  other = table("x,kind,price,size\n1,c,10,3\n", {"kind", "price", "size"});
  other.targets_apart = true;
  EXPECT_EQ(refusal(other, &info),
            "t2.csv: 1 of 1 samples is bad: t2.csv:2: column 'kind': expected one of a, b, as in the training set, "
            "found 'c'. Repair or remove them, or say `bad_samples: skip`");
  other = table("x,features,price\n1,c,10\n", {"features", "price"});
  other.targets_apart = true;
  EXPECT_EQ(
      refusal(other),
      "t3.csv: column 'features': expected a target of another name, which samples have for something else; rename "
      "the column");
}

TEST(TableValues, TextsOfAFileThatKnowsTypes) {
  EXPECT_EQ(data::typed_otherwise({"2024-05-01", "2024-05-02"}), "dates");
  EXPECT_EQ(data::typed_otherwise({"1", "2.5"}), "numbers");
  EXPECT_EQ(data::typed_otherwise({"1", "2", "10"}), "") << "codes, as of a deck of cards";
  EXPECT_EQ(data::typed_otherwise({"1", "2.5", "J"}), "");
  EXPECT_EQ(data::typed_otherwise({"2024-05-01"}), "");
  EXPECT_EQ(data::written_otherwise({"2024-5-1", "2024-12-31"}), "dates");
}

}  // namespace lockstep::test
