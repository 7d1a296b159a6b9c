// Time series: what a window of rows has, which rows are successive, how windows are split without a row in both parts,
// and what is refused.
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "data/open.hpp"
#include "data/reader_support.hpp"
#include "data/split.hpp"
#include "data/statistics.hpp"
#include "lockstep/error.hpp"

namespace lockstep::test {

namespace {

using data::channel_statistics;
using data::open;

class RowWindowsTest : public testing::Test {
 protected:
  [[nodiscard]] SourceOptions series(const std::string& text, std::int64_t window, std::vector<std::int64_t> horizon) {
    const std::string path = folder_ / ("s" + std::to_string(files_++) + ".csv");
    write_file(path, text);
    SourceOptions options;
    options.kind = SourceKind::table;
    options.paths = {path};
    options.target = {"load"};
    options.window = window;
    options.horizon = std::move(horizon);
    return options;
  }
  [[nodiscard]] std::string refusal(const SourceOptions& options, const DataSetInfo* like = nullptr) const {
    return without(message_of(ExitCode::data, [&] { (void)open(options, {.like = like}); }), folder_.path());
  }
  [[nodiscard]] std::string name(const DataSet& set, std::int64_t id) const {
    return without(set.name(id), folder_.path());
  }

  TemporaryFolder folder_;
  int files_ = 0;
};

/// load: 0, 1, 2, ...; warm: 100, 101, ...
std::string rising(int rows) {
  std::string text = "load,warm\n";
  for (int i = 0; i < rows; ++i) text += std::to_string(i) + "," + std::to_string(100 + i) + "\n";
  return text;
}

std::vector<double> inputs_of(const DataSet& set, std::int64_t id) {
  Sample sample;
  set.read(id, sample);
  const auto values = sample.at(0).tensor.as<double>();
  return {values.begin(), values.end()};
}

std::vector<float> targets_of(const DataSet& set, std::int64_t id) {
  Sample sample;
  set.read(id, sample);
  const auto values = sample.at(1).tensor.as<float>();
  return {values.begin(), values.end()};
}

/// All numbers of column `load` that windows of a rising() set have, as inputs or targets.
std::set<double> rows_of(const DataSet& set) {
  std::set<double> rows;
  for (std::int64_t id = 0; id < set.size(); ++id) {
    const auto inputs = inputs_of(set, id);
    for (std::size_t i = 0; i < inputs.size(); i += 2) rows.insert(inputs[i]);
    for (const float target : targets_of(set, id)) rows.insert(target);
  }
  return rows;
}

}  // namespace

TEST_F(RowWindowsTest, AWindowHasItsRowsAndTheTargetsBehindIt) {
  const auto set = open(series(rising(8), 3, {1, 2}));
  const DataSetInfo& info = set->info();
  EXPECT_EQ(info.features.at(0).spec, (TensorSpec{DType::f64, {3, 2}}));
  EXPECT_EQ(info.features.at(1).spec, (TensorSpec{DType::f32, {2}}));
  EXPECT_EQ(info.features[1].classes, (std::vector<std::string>{"load+1", "load+2"}));
  ASSERT_EQ(set->size(), 4);
  EXPECT_EQ(inputs_of(*set, 1), (std::vector<double>{1, 101, 2, 102, 3, 103})) << "the target's past is a feature";
  EXPECT_EQ(targets_of(*set, 1), (std::vector<float>{4, 5}));
  EXPECT_EQ(targets_of(*set, 3), (std::vector<float>{6, 7}));
  EXPECT_EQ(name(*set, 0), "s0.csv:4") << "the window's last row";

  const auto ahead = open(series(rising(8), 2, {4}));
  EXPECT_EQ(ahead->info().features.at(1).spec, (TensorSpec{DType::f32, {}}));
  ASSERT_EQ(ahead->size(), 3);
  EXPECT_EQ(targets_of(*ahead, 0), (std::vector<float>{5}));

  SourceOptions both = series(rising(8), 2, {1, 3});
  both.target = {"load", "warm"};
  const auto several = open(both);
  EXPECT_EQ(several->info().features.at(1).classes, (std::vector<std::string>{"load+1", "load+3", "warm+1", "warm+3"}));
  EXPECT_EQ(targets_of(*several, 0), (std::vector<float>{2, 4, 102, 104}));

  SourceOptions blind = series(rising(8), 2, {1});
  blind.except = {"load"};
  EXPECT_EQ(inputs_of(*open(blind), 0), (std::vector<double>{100, 101})) << "without the target's past";
}

TEST_F(RowWindowsTest, ATargetOfClassesIsOfOneRow) {
  const std::string weather = "rain,load\nno,1\nyes,2\nno,3\nyes,4\nyes,5\n";
  SourceOptions options = series(weather, 2, {2});
  options.target = {"rain"};
  const auto set = open(options);
  ASSERT_EQ(set->size(), 2);
  EXPECT_EQ(set->label(0), 1);
  EXPECT_EQ(set->info().class_counts, (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(inputs_of(*set, 0), (std::vector<double>{1, 0, 1, 0, 1, 2}));
  options.horizon = {1, 2};
  EXPECT_EQ(
      refusal(options),
      "s0.csv: column 'rain': expected numbers, since 2 rows ahead are predicted at once, found classes; name one "
      "row in a list: `horizon: [2]`");
}

TEST_F(RowWindowsTest, SeriesAreApartAndInOrderOfTheirTimes) {
  const std::string text =
      "day,site,load\n2024-01-01,a,1\n2024-01-01,b,10\n2024-01-02,a,2\n2024-01-02,b,20\n2024-01-03,a,3\n"
      "2024-01-04,a,4\n2024-01-06,b,30\n";
  SourceOptions options = series(text, 2, {1});
  options.series = "site";
  options.time = "day";
  const auto set = open(options);
  ASSERT_EQ(set->size(), 3);
  EXPECT_EQ(set->info().columns.size(), 1U) << "neither the series nor the time is a feature";
  EXPECT_EQ(inputs_of(*set, 1), (std::vector<double>{2, 3}));
  EXPECT_EQ(inputs_of(*set, 2), (std::vector<double>{10, 20}));
  EXPECT_EQ(targets_of(*set, 2), (std::vector<float>{30}));
  EXPECT_EQ(without(set->info().warnings.at(0), folder_.path()),
            "column 'day': more time than usual lies before 1 row, first before s0.csv:8: windows reach over it");

  options.series = "";
  EXPECT_EQ(
      refusal(options),
      "s0.csv:3: column 'day': expected a later time than 2024-01-01, as the row before has, found 2024-01-01; sort "
      "the rows by it, or name the column that tells several series apart: `series`");
  options = series("hour,site,load\n2,a,1\n1,a,2\n", 1, {1});
  options.series = "site";
  options.time = "hour";
  EXPECT_EQ(
      refusal(options),
      "s1.csv:3: column 'hour': expected a later time than 2, as the row before has, found 1; sort the rows of each "
      "series by it");
  options.time = "site";
  EXPECT_EQ(refusal(options), "s1.csv: the column 'site' is `series` and `time`; name another column as one of them");
  options.series = "";
  EXPECT_EQ(refusal(options),
            "s1.csv: column 'site': expected times, dates such as 2024-05-01 12:30:00 or numbers, found neither; name "
            "another column under `time`");
  options.time = "load";
  EXPECT_EQ(refusal(options), "s1.csv: the column 'load' is `time` and a target; name another column as one of them");
}

TEST_F(RowWindowsTest, NoWindowReachesOverARowThatIsLeftOut) {
  SourceOptions options = series("site,load\na,0\na,1\nb,7\na,oops\na,3\na,4\n,5\na,6\na,7\n", 1, {1});
  options.series = "site";
  EXPECT_EQ(refusal(options).substr(0, 20), "s0.csv: 2 of 9 sampl");
  options.bad_samples = BadWhenIndexed::skip;
  const auto set = open(options);
  std::vector<std::pair<double, float>> pairs;
  for (std::int64_t id = 0; id < set->size(); ++id) pairs.emplace_back(inputs_of(*set, id)[0], targets_of(*set, id)[0]);
  EXPECT_EQ(pairs, (std::vector<std::pair<double, float>>{{0, 1}, {3, 4}, {6, 7}}));
}

TEST_F(RowWindowsTest, NoRowIsInBothParts) {
  const std::shared_ptr<const DataSet> whole = open(series(rising(100), 5, {1, 2, 3}));
  data::SplitOptions options;
  options.fraction = 0.3;
  const auto [train, validation] = data::split(whole, options);
  const auto trained = rows_of(*train), held = rows_of(*validation);
  EXPECT_EQ(std::vector<double>(held.begin(), held.end()).front(), 70);
  EXPECT_EQ(*held.rbegin(), 99);
  EXPECT_EQ(*trained.rbegin(), 69);
  EXPECT_EQ(train->size(), 63);
  EXPECT_EQ(validation->size(), 23);
  EXPECT_EQ(train->info().warnings.back(), "7 windows reach over a border between training and validation: left out");
  options.seed = 7;
  EXPECT_EQ(data::split(whole, options).train->info().digest, train->info().digest) << "time, not chance";

  options.fraction = 0;
  std::set<std::string> names;
  for (int fold = 1; fold <= 4; ++fold) {
    options.fold = {fold, 4};
    const auto parts = data::split(whole, options);
    const auto first = rows_of(*parts.train), second = rows_of(*parts.validation);
    EXPECT_EQ(*second.begin(), 25 * (fold - 1));
    EXPECT_EQ(*second.rbegin(), 25 * fold - 1);
    for (const double row : second) EXPECT_FALSE(first.contains(row)) << row;
    for (std::int64_t id = 0; id < parts.validation->size(); ++id) names.insert(parts.validation->name(id));
  }
  EXPECT_EQ(names.size(), 4U * 18U);

  const auto refused = [&](const data::SplitOptions& how) {
    return without(message_of(ExitCode::configuration, [&] { (void)data::split(whole, how); }), folder_.path());
  };
  EXPECT_EQ(
      refused({.fraction = 0.05}),
      "s0.csv: 88 windows of 8 rows, with what they predict, for training and 0 for validation; each needs one at "
      "least");
  EXPECT_EQ(
      refused({.fraction = 0.3, .stratify = true}),
      "s0.csv: windows of a time series are split by time, for the rows of one are in others, too; give a fraction "
      "or a fold, without stratify");
}

TEST_F(RowWindowsTest, SeriesAreSplitAtOneTimeOrEachByItself) {
  // Series b begins where a ends: with times only b is held out.
  std::string text = "day,site,load\n";
  for (int i = 0; i < 20; ++i) text += std::to_string(i) + ",a," + std::to_string(i) + "\n";
  for (int i = 20; i < 40; ++i) text += std::to_string(i) + ",b," + std::to_string(i) + "\n";
  SourceOptions options = series(text, 2, {1});
  options.series = "site";
  options.except = {"day"};
  const auto lowest_held_out = [&] {
    const auto parts = data::split(open(options), {.fraction = 0.25});
    std::vector<double> firsts;
    for (std::int64_t id = 0; id < parts.validation->size(); ++id) {
      firsts.push_back(inputs_of(*parts.validation, id)[0]);
    }
    return firsts;
  };
  EXPECT_EQ(lowest_held_out(), (std::vector<double>{15, 16, 17, 35, 36, 37}));
  options.except = {};
  options.time = "day";
  EXPECT_EQ(lowest_held_out(), (std::vector<double>{30, 31, 32, 33, 34, 35, 36, 37}));
}

TEST_F(RowWindowsTest, StatisticsCountEachTrainingRowOnce) {
  const auto parts = data::split(open(series(rising(20), 4, {1})), {.fraction = 0.5});
  // Of ten training rows the last is a target only.
  const auto statistics = channel_statistics(*parts.train, {});
  EXPECT_DOUBLE_EQ(statistics.mean.at(0), 4);
  EXPECT_DOUBLE_EQ(statistics.mean.at(1), 104);
  EXPECT_DOUBLE_EQ(statistics.stddev.at(0), std::sqrt(60.0 / 9));
  EXPECT_EQ(data::target_statistics(*parts.train).at("label").mean, (std::vector<double>{6.5}));
}

TEST_F(RowWindowsTest, RowsToPredictForAreWindowedAsTraining) {
  const auto train = open(series(rising(20), 3, {1, 2}));
  SourceOptions rows;
  rows.kind = SourceKind::table;
  rows.paths = series("warm,load\n100,5\n101,6\n102,7\n103,8\n", 0, {}).paths;
  const auto set = open(rows, {.like = &train->info()});
  ASSERT_EQ(set->size(), 2) << "the last window's targets are in the future";
  EXPECT_EQ(inputs_of(*set, 1), (std::vector<double>{6, 101, 7, 102, 8, 103}));
  EXPECT_EQ(set->info().features.size(), 1U);
  EXPECT_EQ(name(*set, 1), "s1.csv:5");

  const auto other = series(rising(20), 4, {1});
  EXPECT_EQ(
      refusal(other, &train->info()),
      "s2.csv: expected samples of 3 rows, the next 2 predicted, as the training set has, found 4 rows, the next 1 "
      "predicted; give both sources the same `window` and `horizon`");
  EXPECT_EQ(
      refusal(series(rising(3), 3, {1, 4})),
      "s3.csv: expected 3 rows in a row for a window and 4 behind it, found fewer; add rows, or make `window` shorter");
  SourceOptions files = series(rising(9), 3, {1});
  files.paths.push_back(files.paths[0]);
  EXPECT_EQ(refusal(files),
            "s4.csv: expected one file, since nothing says whether its rows are followed by those of s4.csv; name the "
            "column of times under `time`");
}

TEST_F(RowWindowsTest, TargetsFarFromZeroKeepTheirDigits) {
  std::string text = "load\n";
  for (int i = 0; i < 12; ++i) text += std::to_string(100'000'000 + i) + ".25\n";
  SourceOptions options = series(text, 2, {1, 2});
  options.targets_centred = true;
  const auto train = open(options);
  EXPECT_EQ(train->info().features.at(1).offsets, (std::vector<double>{100'000'000.25, 100'000'000.25}));
  EXPECT_EQ(targets_of(*train, 3), (std::vector<float>{5, 6}));
  options.targets_centred = false;
  EXPECT_EQ(targets_of(*open(options, {.like = &train->info()}), 3), (std::vector<float>{5, 6}));
}

}  // namespace lockstep::test
