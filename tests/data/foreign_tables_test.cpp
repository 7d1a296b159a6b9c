// Tables as other programs write them: row names, encodings, delimiters, missing values, spellings, dates; and what is
// left out of them with a word. The right values are those of pandas 2.2 and scikit-learn 1.5.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "data/augment.hpp"
#include "data/open.hpp"
#include "data/reader_support.hpp"
#include "data/readers/table_text.hpp"
#include "data/readers/table_values.hpp"
#include "data/statistics.hpp"
#include "lockstep/error.hpp"

namespace lockstep::test {

namespace {

using Names = std::vector<std::string>;

class ForeignTables : public testing::Test {
 protected:
  [[nodiscard]] SourceOptions table(const std::string& text, Names target = {"y"}, const std::string& name = "t.csv") {
    write_file(folder_ / name, text);
    SourceOptions options;
    options.kind = SourceKind::table;
    options.paths = {folder_ / name};
    options.target = std::move(target);
    return options;
  }
  [[nodiscard]] std::string refusal(const SourceOptions& options, const DataSetInfo* like = nullptr) const {
    return without(message_of(ExitCode::data, [&] { (void)data::open(options, {.like = like}); }), folder_.path());
  }
  [[nodiscard]] Names warnings_of(const DataSet& set) const {
    Names found;
    for (const auto& warning : set.info().warnings) found.push_back(without(warning, folder_.path()));
    return found;
  }

  TemporaryFolder folder_;
};

Names columns_of_set(const DataSet& set) {
  Names names;
  for (const Column& column : set.info().columns) names.push_back(column.name);
  return names;
}

std::vector<double> cells(const DataSet& set, std::int64_t id) {
  Sample sample;
  set.read(id, sample);
  const auto values = sample.at(0).tensor.as<double>();
  return {values.begin(), values.end()};
}

/// What a step gets of each row's first column.
std::vector<float> normalized_column(const DataSet& set) {
  const auto statistics = data::channel_statistics(set, {});
  data::PipelineOptions options;
  options.mean = statistics.mean;
  options.stddev = statistics.stddev;
  const AugmentRegistry none;
  const data::Pipeline pipeline(set.info().features, options, none);
  Sample sample;
  data::PipelineScratch scratch;
  std::vector<float> column;
  for (std::int64_t id = 0; id < set.size(); ++id) {
    set.read(id, sample);
    std::vector<float> row(static_cast<std::size_t>(sample[0].tensor.elements())), label(1);
    const std::vector<std::byte*> outputs = {reinterpret_cast<std::byte*>(row.data()),
                                             reinterpret_cast<std::byte*>(label.data())};
    pipeline.run(sample, id, 0, scratch, outputs);
    column.push_back(row[0]);
  }
  return column;
}

}  // namespace

TEST_F(ForeignTables, ColumnsWithoutANameAreNotUsed) {
  const auto pandas = data::open(table(",x,y\n0,1.5,2\n1,2.5,3\n"));
  EXPECT_EQ(columns_of_set(*pandas), (Names{"x"}));
  EXPECT_EQ(warnings_of(*pandas),
            (Names{"t.csv:1: column 1 has no name, like the row names of pandas and R: it is not used"}));
  EXPECT_EQ(columns_of_set(*data::open(table("\"\",\"x\",\"y\"\n\"1\",5,6\n\"2\",7,8\n"))), (Names{"x"}));
  const auto trailing = data::open(table("x,y,\n1,2,\n3,4,\n"));
  EXPECT_EQ(columns_of_set(*trailing), (Names{"x"}));
  EXPECT_EQ(warnings_of(*trailing), (Names{"t.csv:1: column 3 has no name: it is not used"}));
  EXPECT_EQ(columns_of_set(*data::open(table("x,y\nann,1,2\nbob,3,4\n"))), (Names{"x"})) << "R's write.table";
  EXPECT_EQ(data::open(table("x,y\n1,2,\n3,4,\n"))->info().warnings, Names()) << "commas at the ends of rows";
  const auto numbered = data::open(table(",0,1\n0,1.5,2\n1,2.5,3\n", {"1"}));
  EXPECT_EQ(columns_of_set(*numbered), (Names{"0"})) << "a frame of NumPy's";
  EXPECT_EQ(refusal(table("0,1\n1.5,2\n", {"1"})),
            "t.csv:1: expected the names of the columns in the first row, found numbers: 0, 1");
}

TEST_F(ForeignTables, RowNamesOfPandasAreUsedIfTheyAreNamed) {
  SourceOptions options = table("Unnamed: 0,x,y\n7,1,2\n9,3,4\n");
  const auto set = data::open(options);
  EXPECT_EQ(columns_of_set(*set), (Names{"x"}));
  EXPECT_EQ(warnings_of(*set), (Names{"column 'Unnamed: 0': row names that pandas has written: it is not used; to use "
                                      "it, name it under `features`"}));
  options.features = {"*"};
  EXPECT_EQ(columns_of_set(*data::open(options)), (Names{"x"}));
  options.features = {"Unnamed: 0", "x"};
  EXPECT_EQ(columns_of_set(*data::open(options)), (Names{"Unnamed: 0", "x"}));
}

TEST_F(ForeignTables, NumbersAreNormalisedInDouble) {
  std::string text = "when,y\n";
  for (int i = 0; i < 5; ++i) text += std::to_string(1700000000000 + i) + ",1\n";
  const auto set = data::open(table(text));
  const auto statistics = data::channel_statistics(*set, {});
  EXPECT_DOUBLE_EQ(statistics.mean[0], 1700000000002.0);
  EXPECT_DOUBLE_EQ(statistics.stddev[0], std::sqrt(2.0));
  const std::vector<float> expected = {-1.4142135F, -0.70710677F, 0, 0.70710677F, 1.4142135F};  // StandardScaler
  EXPECT_EQ(normalized_column(*set), expected);
  text.replace(text.find("000004"), 6, "000005");
  EXPECT_NE(data::open(table(text))->info().digest, set->info().digest) << "fp32 does not tell them apart";
}

TEST_F(ForeignTables, AConstantColumnHasNoDeviation) {
  const auto set = data::open(table("c,y\n0.1,1\n0.1,2\n0.1,3\n"));
  EXPECT_EQ(data::channel_statistics(*set, {}).stddev[0], 0);
  EXPECT_EQ(normalized_column(*set), (std::vector<float>{0, 0, 0}));
}

TEST_F(ForeignTables, TargetsFarFromZeroKeepTheirDifferences) {
  SourceOptions options = table("x,y\n1,100000000.25\n2,100000001.5\n3,100000003\n");
  EXPECT_EQ(warnings_of(*data::open(options)),
            (Names{"column 'y': targets from 100000000.25 to 100000003, whose differences fp32 hardly holds; add "
                   "`normalize_target: true` beside `normalize`"}));
  options.targets_centred = true;
  const auto set = data::open(options);
  EXPECT_EQ(set->info().features[1].offsets, (std::vector<double>{100000000.25}));
  EXPECT_TRUE(set->info().warnings.empty());
  Sample sample;
  set->read(2, sample);
  EXPECT_EQ(sample[1].tensor.as<float>()[0], 2.75F);
  EXPECT_DOUBLE_EQ(data::target_statistics(*set).at("label").mean[0], 100000001.58333333);
  const auto other = data::open(table("x,y\n1,100000002\n", {"y"}, "other.csv"), {.like = &set->info()});
  other->read(0, sample);
  EXPECT_EQ(sample[1].tensor.as<float>()[0], 1.75F) << "less the training set's offset";
  SourceOptions near = table("x,y\n1,100\n2,200\n");
  near.targets_centred = true;
  EXPECT_TRUE(data::open(near)->info().features[1].offsets.empty());
}

TEST_F(ForeignTables, MissingValuesAreThoseOfPandas) {
  for (const char* value :
       {"",     "#N/A", "#N/A N/A", "#NA",  "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
        "<NA>", "N/A",  "NA",       "NULL", "NaN",     "None",     "n/a",  "nan",  "null",   " NA "}) {
    EXPECT_TRUE(data::is_missing(value)) << value;
  }
  for (const char* value : {"0", "no", "none", "-", "N", "Na"}) EXPECT_FALSE(data::is_missing(value)) << value;
  SourceOptions options = table("x,y\n1,a\n2,NULL\n3,b\n");
  EXPECT_EQ(refusal(options),
            "t.csv: 1 of 3 samples is bad: t.csv:3: column 'y': expected a target, found 'NULL', which stands for a "
            "missing value. Repair or remove them, or say `bad_samples: skip`");
  options.bad_samples = BadWhenIndexed::skip;
  const auto set = data::open(options);
  EXPECT_EQ(set->info().class_names, (Names{"a", "b"}));
  EXPECT_EQ(warnings_of(*set), (Names{"1 of 3 samples, 33.3 %, are bad and skipped; look at what is wrong with them"}));
}

TEST_F(ForeignTables, SpellingsOfACategoryAreOne) {
  for (const auto& [a, b] : std::vector<std::pair<const char*, const char*>>{{"1", "1.0"},
                                                                             {"True", "true"},
                                                                             {"dog ", "dog"},
                                                                             {"-2", "-2.00"},
                                                                             {"+3", "3"},
                                                                             {"FALSE", "False"},
                                                                             {"1.50", "1.5"}}) {
    EXPECT_EQ(data::category_key(a), data::category_key(b));
  }
  for (const auto& [a, b] : std::vector<std::pair<const char*, const char*>>{
           {"1", "01"}, {"1E3", "1000"}, {"dog", "Dog"}, {"12345678901234567890", "12345678901234567891"}}) {
    EXPECT_NE(data::category_key(a), data::category_key(b));
  }
  const auto train = data::open(table("k,y\nTrue,1\ntrue,2\nFalse,3\ndog ,4\ndog,5\n"));
  EXPECT_EQ(train->info().columns[0].categories, (Names{"False", "dog", "true"}));
  const auto other = data::open(table("k,y\nTRUE,1\nfalse,1\n", {"y"}, "other.csv"), {.like = &train->info()});
  EXPECT_EQ(cells(*other, 0), (std::vector<double>{0, 0, 1}));
  EXPECT_EQ(cells(*other, 1), (std::vector<double>{1, 0, 0}));
  SourceOptions classes = table("x,y\n1,0\n2,1.0\n3,1\n");
  classes.categorical = {"y"};
  EXPECT_EQ(data::open(classes)->info().class_names, (Names{"0", "1"}));
}

TEST_F(ForeignTables, DatesAreDays) {
  EXPECT_EQ(data::days_in("1970-01-02"), 1);
  EXPECT_EQ(data::days_in("2024-02-29"), 19782);
  EXPECT_EQ(data::days_in("1969-12-31 12:00"), -0.5);
  EXPECT_EQ(data::days_in("2024-05-01T06:00:00Z"), 19844.25);
  EXPECT_EQ(data::days_in("2024-05-01T06:00:00.000+06:00"), 19844);
  for (const char* value : {"2024-02-30", "2024-5-1", "2024-05-01T", "2024-05-01 25:00", "20240501", "01-05-2024"}) {
    EXPECT_FALSE(data::days_in(value)) << value;
  }
  const auto set = data::open(table("d,y\n2024-05-01,1\n,2\n2024-05-02 12:00:00,3\n"));
  const Column& column = set->info().columns.at(0);
  EXPECT_TRUE(column.dates && column.missing && column.categories.empty());
  EXPECT_EQ(cells(*set, 2), (std::vector<double>{19845.5, 0}));
  EXPECT_EQ(refusal(table("d,y\n2024-05-01,1\nyesterday,2\n2024-05-02,3\n")),
            "t.csv: 1 of 3 samples is bad: t.csv:3: column 'd': expected a date such as 2024-05-01, found 'yesterday'. "
            "Repair or remove them, or say `bad_samples: skip`");
  EXPECT_EQ(
      refusal(table("x,y\n1,2024-05-01\n2,2024-05-02\n")),
      "t.csv: column 'y': expected a target of numbers or classes, found dates; write them as numbers, or add the "
      "column to `categorical`");
}

TEST_F(ForeignTables, ColumnsThatTellNothingAreLeftOutWithAWord) {
  std::string text = "empty,words,x,y\n";
  for (int i = 0; i < 1100; ++i)
    text += ",text " + std::to_string(i) + "," + std::to_string(i % 7) + "," + std::to_string(i % 5) + "\n";
  SourceOptions options = table(text);
  const auto set = data::open(options);
  EXPECT_EQ(columns_of_set(*set), (Names{"x"}));
  EXPECT_EQ(warnings_of(*set),
            (Names{"column 'empty': expected values, found none: it is not used; `except: [empty]` says so",
                   "column 'words': expected at most 1000 categories, found 1100: it is not used; `except: [words]` "
                   "says so"}));
  options.except = {"empty", "w*"};
  EXPECT_TRUE(data::open(options)->info().warnings.empty());
  options.features = {"words", "x"};
  EXPECT_EQ(refusal(options),
            "t.csv: the column 'words' is named by `features` and by `except`; leave it out of one of "
            "them");
  options.except = {};
  EXPECT_EQ(refusal(options),
            "t.csv: column 'words': expected at most 1000 categories, found 1100; name the columns to "
            "use under `features`");
}

TEST_F(ForeignTables, IdentifiersAreNoted) {
  std::string text = "id,ticket,x,y\n";
  for (int i = 0; i < 60; ++i) {
    text += std::to_string((i * 7) % 60 + 1) + ",t" + std::to_string(i) + "," + std::to_string(i % 9) + "," +
            std::to_string(i % 5) + "\n";
  }
  EXPECT_EQ(warnings_of(*data::open(table(text))),
            (Names{"column 'id': looks like row numbers, 60 whole numbers in a row; leave it out with `except: [id]`",
                   "column 'ticket': looks like an identifier, with 60 categories in 60 rows; leave it out with "
                   "`except: [ticket]`"}));
}

TEST_F(ForeignTables, RowsMayBeShortButNotLong) {
  const auto set = data::open(table("a,b,c\n1,2,3\n4,5\n7,1,2\n", {"a"}));
  EXPECT_TRUE(std::isnan(cells(*set, 1)[1]));
  EXPECT_EQ(warnings_of(*set),
            (Names{"1 row has fewer fields than the header, which has 3 (t.csv:3 has 2): what they lack is missing"}));
  EXPECT_EQ(refusal(table("a,b\n1,2\n3,4,5\n", {"a"})),
            "t.csv: 1 of 2 samples is bad: t.csv:3: 3 fields; the header has 2. "
            "Repair or remove them, or say `bad_samples: skip`");
}

TEST_F(ForeignTables, UnknownCategoriesMayBeIgnored) {
  const auto train = data::open(table("k,y\na,1\nb,2\n"));
  SourceOptions options = table("k,y\nc,1\nb,2\n", {"y"}, "other.csv");
  options.unknown = UnknownCategory::ignore;
  const auto set = data::open(options, {.like = &train->info()});
  EXPECT_EQ(cells(*set, 0), (std::vector<double>{0, 0}));
  EXPECT_EQ(warnings_of(*set), (Names{"column 'k': 1 value is of a category that the training set lacks: taken for no "
                                      "category"}));
}

TEST_F(ForeignTables, SeveralTargetsOfTruthAreOneAndZero) {
  const auto set = data::open(table("x,a,b\n1,True,0\n2,False,1\n", {"a", "b"}));
  Sample sample;
  set->read(0, sample);
  EXPECT_EQ(sample[1].tensor.as<float>()[0], 1);
  set->read(1, sample);
  EXPECT_EQ(sample[1].tensor.as<float>()[0], 0);
}

TEST_F(ForeignTables, DelimitersAndDecimalCommas) {
  const auto semicolons = data::open(table("x;name;y\n1,5;\"a;b\";2\n2,25;c;3\n"));
  EXPECT_EQ(cells(*semicolons, 1), (std::vector<double>{2.25, 0, 1}));
  EXPECT_EQ(data::open(table("x\ty\n1\t2\n3\t4\n"))->size(), 2);
  EXPECT_EQ(data::open(table("x, y\n1, 2\n3, 4\n"))->size(), 2) << "a space after each comma";
  EXPECT_EQ(
      refusal(table("x,y\n\"1,5\",2\n\"2,5\",3\n")),
      "t.csv: column 'x': expected numbers with a point, or words, found '1,5'; write the numbers with a point, or "
      "add the column to `categorical`");
}

TEST_F(ForeignTables, LineEndsAndEncodings) {
  EXPECT_EQ(data::open(table("x,y\r1,2\r3,4\r"))->size(), 2);
  const std::string little(
      "\xFF\xFEx\0,\0y\0\n\0\xE9\0,\0"
      "2\0\n\0z\0,\0"
      "3\0\n\0",
      26);
  EXPECT_EQ(data::open(table(little))->info().columns[0].categories, (Names{"z", "\xC3\xA9"}));
  const std::string big(
      "\xFE\xFF\0x\0,\0y\0\n\0"
      "1\0,\0"
      "2\0\n",
      18);
  EXPECT_EQ(data::open(table(big))->size(), 1);
  EXPECT_EQ(refusal(table(std::string("x\0,\0y\0\n\0", 8))),
            "t.csv: expected text, found byte 0 at 1; if it is UTF-16, write it with a byte order mark, or as UTF-8");
  EXPECT_EQ(
      refusal(table("x,y\n1,n\xE9\n")),
      "t.csv:2: column 'y': expected UTF-8, found byte 0xE9 in 'n?'; if the file is Latin-1, convert it: iconv -f "
      "LATIN1 -t UTF-8");
  EXPECT_EQ(
      refusal(table("gr\xF6\xDF"
                    "e,y\n1,2\n")),
      "t.csv:1: the name of column 1: expected UTF-8, found byte 0xF6 in 'gr??e'; if the file is Latin-1, convert "
      "it: iconv -f LATIN1 -t UTF-8");
}

TEST_F(ForeignTables, EndingsAreReadInAnyCase) {
  EXPECT_EQ(data::kind_of_ending("a/B.CSV"), ".csv");
  EXPECT_EQ(data::kind_of_ending("b.jsonl.gz"), ".jsonl");
  EXPECT_EQ(data::kind_of_ending("b.tsv.bz2"), ".tsv");
  EXPECT_EQ(data::kind_of_ending("photos"), "");
}

}  // namespace lockstep::test
