// The job's order of classes: of a model that was trained elsewhere, whatever the names sort like.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/pack.hpp"
#include "data/reader_support.hpp"

namespace lockstep::test {

namespace {

using Names = std::vector<std::string>;

SourceOptions in_order(SourceOptions options, const Names& classes) {
  options.classes = classes;
  return options;
}

/// Of each sample what its number stands for; read() and label() agree.
Names classes_of(const DataSet& set) {
  Names names;
  Sample sample;
  for (std::int64_t id = 0; id < set.size(); ++id) {
    set.read(id, sample);
    const std::int32_t label = integers_of(sample.back().tensor).at(0);
    EXPECT_EQ(label, set.label(id));
    names.push_back(set.info().class_names.at(static_cast<std::size_t>(label)));
  }
  return names;
}

class ClassOrder : public testing::Test {
 protected:
  /// The same samples and classes in either order, and in a set that is like the training set.
  void expect_order(const SourceOptions& options, const Names& wanted) const {
    const auto sorted = data::open(options), ordered = data::open(in_order(options, wanted));
    EXPECT_NE(sorted->info().class_names, wanted);
    EXPECT_EQ(ordered->info().class_names, wanted);
    EXPECT_EQ(classes_of(*ordered), classes_of(*sorted));
    std::vector<std::int64_t> counts(wanted.size());
    for (std::int64_t id = 0; id < ordered->size(); ++id) ++counts.at(static_cast<std::size_t>(ordered->label(id)));
    EXPECT_EQ(ordered->info().class_counts, counts);
    const auto other = data::open(options, {.like = &ordered->info()});
    EXPECT_EQ(other->info().class_names, wanted);
    EXPECT_EQ(classes_of(*other), classes_of(*sorted));
    EXPECT_EQ(other->info().digest, ordered->info().digest) << "found again when the model is evaluated";
  }
  [[nodiscard]] std::string refusal(const SourceOptions& options, const DataSetInfo* like = nullptr) const {
    return without(message_of(ExitCode::data, [&] { (void)data::open(options, {.like = like}); }), folder_.path());
  }
  [[nodiscard]] SourceOptions animals() const {
    write_folder(folder_ / "animals", {{"cat/1.png", png(4, 4, 3, 1)},
                                       {"cat/2.png", png(4, 4, 3, 2)},
                                       {"dog/1.png", png(4, 4, 3, 3)},
                                       {"owl/1.png", png(4, 4, 3, 4)}});
    return source(SourceKind::images, {folder_ / "animals"});
  }

  TemporaryFolder folder_;
};

}  // namespace

TEST_F(ClassOrder, OfEveryReader) {
  expect_order(animals(), {"owl", "cat", "dog"});

  write_folder(folder_.path(), {{"a.png", png(4, 4, 1, 1)},
                                {"images.csv", "image,label\na.png,y\na.png,x\na.png,y\n"},
                                {"rows.csv", "size,kind\n1,y\n2,x\n3,z\n"},
                                {"texts.csv", "text,label\nwet,y\ndry,x\n"}});
  expect_order(source(SourceKind::csv, {folder_ / "images.csv"}), {"y", "x"});
  auto texts = source(SourceKind::texts, {folder_ / "texts.csv"});
  texts.tokenizer = Tokenizer::bytes;
  texts.context = 4;
  expect_order(texts, {"y", "x"});
  auto table = source(SourceKind::table, {folder_ / "rows.csv"});
  table.target = {"kind"};
  expect_order(table, {"z", "x", "y"});

  const std::string head{'\0', '\0', '\x08'};
  const auto size = [](char n) { return std::string{'\0', '\0', '\0', n}; };
  write_file(folder_ / "idx/train-images-idx3-ubyte", head + '\3' + size(3) + size(1) + size(1) + "abc");
  write_file(folder_ / "idx/train-labels-idx1-ubyte", head + '\1' + size(3) + std::string{'\2', '\0', '\1'});
  auto raw = source(SourceKind::idx, {folder_ / "idx"});
  raw.part = SourcePart::train;
  expect_order(raw, {"2", "0", "1"});

  (void)data::pack(*data::open(animals()), folder_ / "animals.lsp", {});
  expect_order(source(SourceKind::packed, {folder_ / "animals.lsp"}), {"owl", "cat", "dog"});
}

TEST_F(ClassOrder, OfOtherClassesIsRefused) {
  const auto data = animals();
  EXPECT_EQ(refusal(in_order(data, {"dog", "cat", "bird"})),
            "animals: classes: expected the 3 names of the data's classes, the data lack 'bird', the list lacks 'owl'; "
            "name them alike");
  EXPECT_EQ(refusal(in_order(data, {"dog", "cat"})),
            "animals: classes: expected the 3 names of the data's classes, the list lacks 'owl'; name them alike");
  EXPECT_EQ(refusal(in_order(data, {"owl", "dog", "emu", "cat"})),
            "animals: classes: expected the 3 names of the data's classes, the data lack 'emu'; name them alike");
  const auto train = data::open(in_order(data, {"owl", "dog", "cat"}));
  EXPECT_EQ(
      refusal(in_order(data, {"dog", "cat", "owl"}), &train->info()),
      "animals: classes: expected the order of the training set, owl, dog, cat, found dog, cat, owl; leave it out");
  write_file(folder_ / "rows.csv", "size,price\n1,2.5\n2,3.5\n");
  auto table = source(SourceKind::table, {folder_ / "rows.csv"});
  table.target = {"price"};
  EXPECT_EQ(refusal(in_order(table, {"a", "b"})),
            "rows.csv: classes: expected one target, of categories, whose order they say, found another; leave it out");
}

}  // namespace lockstep::test
