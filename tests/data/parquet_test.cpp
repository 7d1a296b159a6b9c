// Parquet as other programs write it (tests/data/parquet/make.py), against CSVs of the same values; and what is
// refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "data/open.hpp"
#include "data/parquet/encodings.hpp"
#include "data/parquet/parquet.hpp"
#include "data/reader_support.hpp"
#include "lockstep/error.hpp"

namespace lockstep::test {
namespace {

using data::parse_csv;
using data::read_parquet;

std::string stored(const std::string& name) {
  return read_file(std::string(PARQUET_FOLDER) + "/" + name);
}

std::string refusal(const std::string& bytes) {
  return message_of(ExitCode::data, [&] { (void)read_parquet(bytes, "t.parquet"); });
}

class ParquetFile : public testing::TestWithParam<const char*> {};

}  // namespace

TEST_P(ParquetFile, HoldsWhatTheCsvHolds) {
  const std::string name = GetParam();
  const auto rows = read_parquet(stored(name + ".parquet"), name).rows,
             expected = parse_csv(stored(name + ".csv"), name);
  ASSERT_EQ(rows.size(), expected.size());
  ASSERT_GT(rows.size(), 100);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].fields, expected[i].fields);
    EXPECT_EQ(rows[i].line, static_cast<int>(i));
  }
}

INSTANTIATE_TEST_SUITE_P(Parquet, ParquetFile,
                         testing::Values("default", "plain", "deltas", "types", "old", "polars", "duckdb"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Parquet, DamageIsNamed) {
  const std::string file = stored("default.parquet");
  EXPECT_EQ(refusal(file.substr(0, 200)), "t.parquet: damaged: it begins as a Parquet file and does not end as one");
  EXPECT_EQ(refusal("PAR1\xff\xff\xff\x7fPAR1"), "t.parquet: damaged: its footer is longer than the file");
  EXPECT_EQ(refusal(std::string("PAR1\1\0\0\0PAR1", 12)), "t.parquet: damaged: its footer ends too early");
  EXPECT_EQ(refusal(std::string("PAR1\0\1\0\0\0PAR1", 13)),
            "t.parquet: damaged: its description of itself cannot be read");
  EXPECT_EQ(refusal(std::string("PAR1\0\0\0\0PARE", 12)), "t.parquet: encrypted; write the file without encryption");
  std::string pages = file;
  std::fill(pages.begin() + 4, pages.begin() + 400, '\xee');
  EXPECT_EQ(refusal(pages), "t.parquet: column 'whole': damaged: its description of itself cannot be read");
}

TEST(Parquet, SumsOfPagesAreCompared) {
  std::string file = stored("sums.parquet");
  EXPECT_EQ(read_parquet(file, "t.parquet").rows.size(), 121U);
  const auto value = file.find("green");
  ASSERT_NE(value, std::string::npos);
  file[value] = 'G';
  EXPECT_EQ(refusal(file), "t.parquet: column 'word': damaged: a page has another CRC-32 than its header says");
}

/// The file with another number in the place of each 120 (as Thrift has it), one at a time: what is said of them.
static std::set<std::string> refusals_with(const std::string& number) {
  const std::string file = stored("default.parquet"), rows = "\xF0\x01";
  std::set<std::string> found;
  for (auto at = file.find(rows); at != std::string::npos; at = file.find(rows, at + 1)) {
    std::string changed = file;
    found.insert(refusal(changed.replace(at, rows.size(), number)));
  }
  return found;
}

TEST(Parquet, PagesHaveAsManyValuesAsThereAreRows) {
  EXPECT_TRUE(refusals_with("\xEE\x01")
                  .contains("t.parquet: column 'whole': damaged: it has 119 values where there are 120 rows"));
  EXPECT_TRUE(refusals_with("\xF2\x01")
                  .contains("t.parquet: column 'whole': damaged: its pages have more values than there are rows, 120"));
}

TEST(Parquet, WhatIsNotReadIsNamed) {
  EXPECT_EQ(
      refusal(stored("brotli.parquet")),
      "t.parquet: column 'a': compressed with Brotli, which is not read; write the file with snappy, gzip or zstd");
}

/// A run of a thousand million values from six bytes.
TEST(Parquet, RunsEndWithTheirCount) {
  const std::string run("\x80\x80\x80\x80\x80\x01\x01", 7);
  data::ByteReader in(run, "short");
  EXPECT_EQ(data::read_runs(in, 1, 5), std::vector<std::uint32_t>(5, 1));
}

/// Files that pack far: by their ratio of bytes both are bombs.
TEST(Parquet, WhatATableTakesCountsAndNotHowFarItPacks) {
  const std::string constant = stored("constant.parquet");
  ASSERT_LT(constant.size(), 64'000U);
  const auto rows = read_parquet(constant, "t.parquet").rows;
  ASSERT_EQ(rows.size(), 220'001U);
  EXPECT_EQ(rows.back().fields, std::vector<std::string>(40, "x"));

  const auto refused = [](const std::string& bytes, std::uint64_t mebibytes) {
    data::UnpackLimits limits;
    limits.held_without_copy = mebibytes << 20U;
    return message_of(ExitCode::data, [&] { (void)read_parquet(bytes, "t.parquet", limits); });
  };
  EXPECT_EQ(refused(constant, 200),
            "t.parquet: expected a table that takes up to 200 MiB of memory, found more in 220000 rows of 40 columns; "
            "write fewer rows, or only the columns that are used");
  // One text of 100 kB, named a hundred thousand times.
  const std::string text = stored("long.parquet");
  ASSERT_LT(text.size(), 1'000U);
  EXPECT_EQ(
      refused(text, 64),
      "t.parquet: expected a table that takes up to 64 MiB of memory, found more in 100000 rows of 1 columns; write "
      "fewer rows, or only the columns that are used");
}

TEST(Parquet, IsATable) {
  SourceOptions options;
  options.kind = SourceKind::table;
  options.paths = {std::string(PARQUET_FOLDER) + "/polars.parquet"};
  options.features = {"small", "word"};
  options.target = {"real"};
  const auto set = data::open(options);
  EXPECT_EQ(set->size(), 120);
  EXPECT_EQ(set->info().columns.at(1).categories.size(), 5);
  EXPECT_EQ(without(set->name(0), PARQUET_FOLDER), "polars.parquet:1");
  options.target = {"reel"};
  EXPECT_EQ(without(message_of(ExitCode::data, [&] { (void)data::open(options); }), PARQUET_FOLDER),
            "polars.parquet: expected a column 'reel', found whole, small, real, gaps, flag, word, name; did you mean "
            "'real'?");
}

TEST(Parquet, TypesDecideAndTheIndexIsNoFeature) {
  SourceOptions options;
  options.kind = SourceKind::table;
  options.paths = {std::string(PARQUET_FOLDER) + "/frame.parquet"};
  options.target = {"y"};
  const auto set = data::open(options);
  const auto& columns = set->info().columns;
  ASSERT_EQ(columns.size(), 3U);
  EXPECT_EQ(columns[0].categories.size(), 13U) << "cards, most of which are numbers, in a column of texts";
  EXPECT_TRUE(columns[1].dates && columns[2].dates);
  Sample sample;
  set->read(1, sample);
  EXPECT_EQ(sample[0].tensor.as<double>()[13], -7) << "1969-12-25";
  EXPECT_DOUBLE_EQ(sample[0].tensor.as<double>()[14], 3599.25 / 86400);
  EXPECT_EQ(set->info().warnings,
            (std::vector<std::string>{
                "column 'tags': expected numbers or texts, found lists or groups of values: it is not used",
                "column 'nested': expected numbers or texts, found lists or groups of values: it is not used",
                "column '__index_level_0__': row names that pandas has written: it is not used; to use it, name it "
                "under `features`"}));
  options.features = {"__index_level_0__"};
  EXPECT_EQ(data::open(options)->info().columns.size(), 1U);
  options.features = {"tags"};
  EXPECT_EQ(without(message_of(ExitCode::data, [&] { (void)data::open(options); }), PARQUET_FOLDER),
            "frame.parquet: column 'tags': expected numbers or texts, found lists or groups of values; leave it out");
}

TEST(Parquet, CategoriesOfPandasAreNoNumbers) {
  SourceOptions options;
  options.kind = SourceKind::table;
  options.paths = {std::string(PARQUET_FOLDER) + "/categorical.parquet"};
  options.target = {"y"};
  const auto set = data::open(options);
  const auto& columns = set->info().columns;
  ASSERT_EQ(columns.size(), 4U);
  EXPECT_EQ(columns[0].categories, (std::vector<std::string>{"1", "2", "3"}));
  EXPECT_TRUE(columns[0].missing);
  EXPECT_EQ(columns[1].categories, (std::vector<std::string>{"0.5", "1", "1.5"}));
  EXPECT_EQ(columns[2].categories, (std::vector<std::string>{"0123", "4567"}));
  EXPECT_EQ(columns[3].categories.size(), 2U);
  EXPECT_FALSE(columns[3].dates);
  EXPECT_EQ(set->info().warnings, std::vector<std::string>());
  options.target = {"rooms"};
  options.bad_samples = BadWhenIndexed::skip;
  EXPECT_EQ(data::open(options)->info().class_names, (std::vector<std::string>{"1", "2", "3"}));
}

TEST(Parquet, TextsAreRead) {
  SourceOptions options;
  options.kind = SourceKind::texts;
  options.paths = {std::string(PARQUET_FOLDER) + "/default.parquet"};
  options.text_column = "name";
  options.label_column = "word";
  options.context = 20;
  options.bad_samples = BadWhenIndexed::skip;
  EXPECT_GT(data::open(options)->size(), 60);
}

}  // namespace lockstep::test
