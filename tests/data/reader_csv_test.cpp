#include <gtest/gtest.h>

#include "data/reader_support.hpp"
#include "data/readers/csv_table.hpp"
#include "data/statistics.hpp"

namespace lockstep::test {
namespace {

TEST(ReaderCsv, ASampleMayHoldTwoImages) {
  const TemporaryFolder folder;
  write_folder(folder.path(), {{"img/a.png", png(4, 4, 3, 1)},
                               {"img/b, \"c\".png", png(2, 6, 1, 2)},
                               {"pairs.csv",
                                "left,label,right\r\nimg/a.png,same,\"img/b, \"\"c\"\".png\"\r\n\r\n"
                                "\"img/a.png\",other,\"img/b, \"\"c\"\".png\""}});
  const auto set = data::open(source(SourceKind::csv, {folder / "pairs.csv"}));
  ASSERT_EQ(set->size(), 2);
  ASSERT_EQ(set->info().features.size(), 3U);
  EXPECT_EQ(set->info().features[0].name, "left");
  EXPECT_EQ(set->info().features[1].name, "right");
  EXPECT_EQ(set->info().features[2].name, "label");
  EXPECT_EQ(set->info().features[1].spec.shape, (Shape{6, 2, 3}));  // grey, in a set with color
  EXPECT_EQ(set->info().class_names, (std::vector<std::string>{"other", "same"}));
  Sample sample;
  set->read(0, sample);
  EXPECT_EQ(bytes_of(sample[0].tensor), picture(4, 4, 3, 1));
  std::vector<std::uint8_t> coloured;
  for (const auto value : picture(2, 6, 1, 2)) coloured.insert(coloured.end(), 3, value);
  EXPECT_EQ(bytes_of(sample[1].tensor), coloured);
  EXPECT_EQ(integers_of(sample[2].tensor), (std::vector<std::int32_t>{1}));
  EXPECT_EQ(without(set->name(1), folder.path()), "pairs.csv:4");
}

TEST(ReaderCsv, NumbersMayBePredicted) {
  const TemporaryFolder folder;
  write_folder(
      folder.path(),
      {{"a.png", png(4, 4, 3)}, {"a.csv", "x,image,y\n1.5,a.png,-2\n3,a.png,1e3\n"}, {"b.csv", "image,x\na.png,7\n"}});
  SourceOptions options = source(SourceKind::csv, {folder / "a.csv"});
  options.target = {"y", "x"};
  const auto set = data::open(options);
  const DataSetInfo& info = set->info();
  ASSERT_EQ(info.features.size(), 2U);
  EXPECT_EQ(info.features[0].name, "image");
  EXPECT_EQ(info.features[1].name, "label");
  EXPECT_EQ(info.features[1].spec, (TensorSpec{DType::f32, {2}}));
  EXPECT_TRUE(info.class_names.empty());
  EXPECT_EQ(set->label(1), -1);
  Sample sample;
  set->read(1, sample);
  EXPECT_EQ(sample[1].tensor.as<float>()[0], 1000);
  EXPECT_EQ(sample[1].tensor.as<float>()[1], 3);
  options.targets_apart = true;
  const auto apart = data::open(options);
  ASSERT_EQ(apart->info().features.size(), 3U);
  EXPECT_EQ(apart->info().features[2].name, "x");
  apart->read(0, sample);
  EXPECT_EQ(sample[1].tensor.as<float>()[0], -2);
  EXPECT_EQ(sample[2].tensor.as<float>()[0], 1.5);
  options.targets_apart = false;
  options.target = {"x"};
  options.paths = {folder / "b.csv"};
  EXPECT_EQ(data::open(options)->info().features[1].spec, (TensorSpec{DType::f32, {}}));
  EXPECT_NE(data::open(options)->info().digest, set->info().digest);
  EXPECT_EQ(without(message_of(ExitCode::data, [&] { (void)data::open(options, {.like = &info}); }), folder.path()),
            "b.csv: expected the targets of the training set; give both sources the same `target`");
  std::filesystem::remove(folder / "a.png");  // statistics of numbers need no image
  const auto statistics = data::target_statistics(*set);
  ASSERT_EQ(statistics.size(), 1U);
  EXPECT_EQ(statistics.at("label").mean, (std::vector<double>{499, 2.25}));
  EXPECT_EQ(statistics.at("label").stddev, (std::vector<double>{501, 0.75}));
  EXPECT_EQ(data::target_statistics(*apart).at("x").mean, (std::vector<double>{2.25}));
}

TEST(ReaderCsvErrors, NumbersToPredict) {
  const TemporaryFolder folder;
  write_folder(folder.path(), {{"a.png", png(4, 4, 3)},
                               {"word.csv", "image,x\na.png,1\na.png,tall\n"},
                               {"label.csv", "image,label,x\na.png,cat,1\n"},
                               {"none.csv", "x,y\n1,2\n"}});
  const auto refusal = [&](const std::string& file, const std::vector<std::string>& target) {
    SourceOptions options = source(SourceKind::csv, {folder / file});
    options.target = target;
    return without(message_of(ExitCode::data, [&] { (void)data::open(options); }), folder.path());
  };
  EXPECT_NE(
      refusal("word.csv", {"x"}).find("word.csv:3: column 'x': expected a number that fp32 can hold, found 'tall'"),
      std::string::npos);
  EXPECT_EQ(refusal("word.csv", {"y"}), "word.csv:1: expected a column 'y', found image, x");
  EXPECT_EQ(
      refusal("label.csv", {"x"}),
      "label.csv:1: the columns are image, label, x; expected one or more of image files beside the targets x, and "
      "none called label");
  EXPECT_EQ(refusal("none.csv", {"x", "y"}),
            "none.csv:1: the columns are x, y; expected one or more of image files beside the targets x, y, and none "
            "called label");
}

TEST(ReaderCsv, NumbersAreTheClassesThemselves) {
  const TemporaryFolder folder;
  write_folder(folder.path(), {{"a.png", png(4, 4, 3)}, {"a.csv", "image,label\na.png,10\na.png,2\n"}});
  const auto set = data::open(source(SourceKind::csv, {folder / "a.csv"}));
  EXPECT_EQ(set->label(0), 10);
  EXPECT_EQ(set->label(1), 2);
  EXPECT_EQ(set->info().class_names.size(), 11U);
}

/// The set of a table of labels, all with the same image.
std::unique_ptr<DataSet> with_labels(const std::vector<std::string>& labels) {
  const TemporaryFolder folder;
  std::string table = "image,label\n";
  for (const auto& label : labels) table += "a.png," + label + "\n";
  write_folder(folder.path(), {{"a.png", png(4, 4, 3)}, {"a.csv", table}});
  return data::open(source(SourceKind::csv, {folder / "a.csv"}));
}

TEST(ReaderCsv, ClassesWithoutASampleAreTold) {
  const auto few = with_labels({"0", "99", "0"});
  EXPECT_EQ(few->info().class_names.size(), 100U);
  EXPECT_EQ(
      few->info().warnings,
      (std::vector<std::string>{"98 of 100 classes have no sample (1, 2, 3 and 95 more): labels that are all numbers "
                                "are the classes' numbers, from 0 to the largest"}));
  EXPECT_EQ(with_labels({"1", "2"})->info().warnings,
            (std::vector<std::string>{"1 of 3 classes has no sample (0): labels that are all numbers are the classes' "
                                      "numbers, from 0 to the largest"}));
  EXPECT_TRUE(with_labels({"1", "0"})->info().warnings.empty());
}

TEST(ReaderCsv, AmongWordsNumbersAreWords) {
  EXPECT_EQ(with_labels({"cat", "-1", "7"})->info().class_names, (std::vector<std::string>{"-1", "7", "cat"}));
  EXPECT_EQ(with_labels({"01", "02"})->info().class_names, (std::vector<std::string>{"01", "02"}));
  EXPECT_TRUE(with_labels({"cat", "7"})->info().warnings.empty());
}

TEST(ReaderCsv, GreyAndColourMakeOneSetOfThreeChannels) {
  const TemporaryFolder folder;
  write_folder(folder.path(), {{"grey.png", png(2, 2, 1)},
                               {"colour.png", png(2, 2, 3)},
                               {"one.csv", "image,label\ngrey.png,a\ncolour.png,b\n"},
                               {"two.csv", "left,right,label\ngrey.png,colour.png,a\ngrey.png,grey.png,b\n"}});
  for (const char* table : {"one.csv", "two.csv"}) {
    const auto set = data::open(source(SourceKind::csv, {folder / table}));
    for (std::int64_t id = 0; id < set->size(); ++id) {
      Sample sample;
      set->read(id, sample);
      for (std::size_t i = 0; i + 1 < sample.size(); ++i) {
        EXPECT_EQ(set->info().features[i].spec.shape, (Shape{2, 2, 3})) << table;
        EXPECT_EQ(sample[i].tensor.shape(), (Shape{2, 2, 3})) << table;
      }
    }
    EXPECT_EQ(data::channel_statistics(*set, {}).mean.size(), 3U) << table;
  }
}

TEST(ReaderCsv, QuotedFields) {
  const auto rows = data::parse_csv(
      "\xEF\xBB\xBF"
      "a,\"x\ny\",\n\"\",\"\"\"\",c\n",
      "t.csv");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].fields, (std::vector<std::string>{"a", "x\ny", ""}));
  EXPECT_EQ(rows[1].fields, (std::vector<std::string>{"", "\"", "c"}));
  EXPECT_EQ(rows[1].line, 3);
}

std::string csv_error(const std::string& table) {
  const TemporaryFolder folder;
  write_folder(folder.path(), {{"a.png", png(4, 4, 3)}, {"a.csv", table}});
  return without(data_error(source(SourceKind::csv, {folder / "a.csv"})), folder.path());
}

TEST(ReaderCsv, LabelsFollowTheRulesOfTables) {
  const TemporaryFolder folder;
  write_folder(folder.path(), {{"a.png", png(4, 4, 3)},
                               {"a.csv", ",image,label\n0,a.png,0.0\n1,a.png,1\n2,a.png,1.0\n"},
                               {"b.csv", "image,label\na.png,True\na.png,true\na.png,FALSE\n"},
                               {"c.csv", "image,label\na.png,TRUE\n"}});
  const auto numbers = data::open(source(SourceKind::csv, {folder / "a.csv"}));
  EXPECT_EQ(numbers->info().class_names, (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(numbers->info().class_counts, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(numbers->info().warnings.size(), 1U) << "a column without a name";
  const auto words = data::open(source(SourceKind::csv, {folder / "b.csv"}));
  EXPECT_EQ(words->info().class_names, (std::vector<std::string>{"FALSE", "true"}));
  EXPECT_EQ(data::open(source(SourceKind::csv, {folder / "c.csv"}), {.like = &words->info()})->label(0), 1);
}

TEST(ReaderCsvErrors, ExactWords) {
  EXPECT_EQ(csv_error(""), "a.csv: empty; expected a row with the names of the columns");
  EXPECT_EQ(csv_error("image,class\na.png,1\n"),
            "a.csv:1: the columns are image, class; expected one or more of image files, and one called label");
  EXPECT_EQ(csv_error("image,image,label\n"), "a.csv:1: the column 'image' is there twice");
  EXPECT_EQ(csv_error("image,label\na.png,1,2\na.png,1\n"),
            "a.csv: 1 of 2 samples is bad: a.csv:2: 3 fields; the header has 2. Repair or remove them, or say "
            "`bad_samples: skip`");
  EXPECT_EQ(csv_error("image,label\n\"a.png,1\n"), "a.csv:2: a quote is opened here and never closed");
  EXPECT_EQ(csv_error("image,label\n\"a.png\"x,1\n"), "a.csv:2: text after a closing quote; expected a comma");
  EXPECT_EQ(csv_error("image,label\n"), "a.csv: expected rows behind the header, found none");
  for (const std::string label : {"-1", "5000000000", "100000", "2.5", "1e3", "inf"}) {
    EXPECT_EQ(
        csv_error("image,label\na.png,0\na.png," + label + "\n"),
        "a.csv:3: label '" + label +
            "': expected the number of a class, 0 to 99999, as the other labels are numbers; write classes as whole "
            "numbers from 0, or all of them as words; numbers to predict are named by `target`, as in `target: label`");
  }
  EXPECT_EQ(csv_error("image,label\na.png,0\na.png,nan\na.png,cat\n"),
            "a.csv: 1 of 3 samples is bad: a.csv:3: the label is nan, no class. Repair or remove them, or say "
            "`bad_samples: skip`");
  EXPECT_EQ(csv_error("image,label\na.png,1\nb.png,1\n,1\na.png,\na.csv,1\n"),
            "a.csv: 4 of 5 samples are bad: a.csv:3: b.png: No such file or directory; a.csv:4: a file name is empty; "
            "a.csv:5: the label is empty; and 1 more. Repair or remove them, or say `bad_samples: skip`");
}

}  // namespace
}  // namespace lockstep::test
