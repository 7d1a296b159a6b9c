// Texts with a class each: what becomes of folders, CSV and JSON lines, of short and long texts, and what is refused.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/reader_support.hpp"
#include "data/split.hpp"
#include "data/tokenizer_support.hpp"

namespace lockstep::test {

namespace {

class TextsTest : public testing::Test {
 protected:
  [[nodiscard]] SourceOptions texts(const std::string& name, const std::string& contents, std::int64_t context = 4) {
    write_file(folder_ / name, contents);
    return at(folder_ / name, context);
  }
  [[nodiscard]] static SourceOptions at(const std::string& path, std::int64_t context = 4) {
    auto options = source(SourceKind::texts, {path});
    options.tokenizer = Tokenizer::bytes;
    options.context = context;
    return options;
  }
  [[nodiscard]] std::string refusal(const SourceOptions& options, const DataSetInfo* like = nullptr) const {
    return without(message_of(ExitCode::data, [&] { (void)data::open(options, {.like = like}); }), folder_.path());
  }

  TemporaryFolder folder_;
};

/// Tokens, then the length, then the class.
std::vector<std::int32_t> sample_of(const DataSet& set, std::int64_t id) {
  Sample sample;
  set.read(id, sample);
  std::vector<std::int32_t> all;
  for (const auto& part : sample) {
    const auto values = integers_of(part.tensor);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

using Numbers = std::vector<std::int32_t>;

}  // namespace

TEST_F(TextsTest, HaveLengthsAndClasses) {
  const auto set = data::open(texts("a.csv", "text,label\nbc,yes\n\"a,b c\",no\nabcd,no\n"));
  const DataSetInfo& info = set->info();
  ASSERT_EQ(info.features.size(), 3U);
  EXPECT_EQ(info.features[1].name, "length");
  EXPECT_EQ(info.class_names, (std::vector<std::string>{"no", "yes"}));
  EXPECT_EQ(info.class_counts, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(info.vocabulary, 256);
  EXPECT_EQ(sample_of(*set, 0), (Numbers{'b', 'c', 0, 0, 2, 1}));
  EXPECT_EQ(sample_of(*set, 1), (Numbers{'a', ',', 'b', ' ', 4, 0}));
  EXPECT_EQ(sample_of(*set, 2), (Numbers{'a', 'b', 'c', 'd', 4, 0}));
  EXPECT_EQ(set->label(0), 1);
  EXPECT_EQ(info.warnings,
            (std::vector<std::string>{"1 of 3 texts are longer than the context of 4 tokens, the longest has 5: their "
                                      "ends are cut off"}));
}

TEST_F(TextsTest, OfFoldersArchivesAndLines) {
  write_folder(folder_ / "train", {{"ham/2.txt", "b"}, {"spam/1.txt", "cc"}, {"ham/1.txt", "a"}});
  write_tar(folder_ / "train.tar", {{"ham/1.txt", "a"}, {"ham/2.txt", "b"}, {"spam/1.txt", "cc"}}, Packing::gzip);
  auto lines = texts("a.jsonl", "{\"say\": \"a\", \"is\": 10}\n\n{\"say\": \"cc\", \"is\": 9}\n");
  lines.text_column = "say";
  lines.label_column = "is";
  for (const char* name : {"train", "train.tar"}) {
    const auto set = data::open(at(folder_ / name));
    EXPECT_EQ(set->name(2), "spam/1.txt");
    EXPECT_EQ(sample_of(*set, 1), (Numbers{'b', 0, 0, 0, 1, 0})) << name;
    EXPECT_EQ(sample_of(*set, 2), (Numbers{'c', 'c', 0, 0, 2, 1})) << name;
  }
  const auto set = data::open(lines);
  EXPECT_EQ(set->info().class_names, (std::vector<std::string>{"9", "10"}));
  EXPECT_EQ(without(set->name(1), folder_.path()), "a.jsonl:3");
  EXPECT_EQ(sample_of(*set, 0), (Numbers{'a', 0, 0, 0, 1, 1}));
}

TEST_F(TextsTest, OfValidationAreAsInTraining) {
  auto training = texts("a.csv", "text,label\nab,x\nc,y\n", 3);
  training.tokenizer = Tokenizer::characters;
  const auto set = data::open(training);
  EXPECT_EQ(sample_of(*set, 1), (Numbers{2, 0, 0, 1, 1}));
  const auto later = data::open(texts("b.csv", "label,text\ny,cccca\n", 100), {.like = &set->info()});
  EXPECT_EQ(sample_of(*later, 0), (Numbers{2, 2, 2, 3, 1}));
  EXPECT_EQ(
      refusal(texts("c.csv", "text,label\nad,x\n"), &set->info()),
      "c.csv: 1 of 1 samples is bad: c.csv:2: the character 'd' (U+0064) does not occur in the training text. Use "
      "`tokenizer: bytes`, or one text and a fraction of it. Repair or remove them, or say `bad_samples: skip`");
  auto unlabelled = at(folder_ / "d.txt");
  write_file(folder_ / "d.txt", "bb");
  unlabelled.label_column = "";
  const auto alone = data::open(unlabelled, {.like = &set->info()});
  EXPECT_EQ(sample_of(*alone, 0), (Numbers{1, 1, 0, 2}));
}

TEST_F(TextsTest, AreSplitByClass) {
  std::string rows = "text,label\n";
  for (int i = 0; i < 40; ++i) rows += std::string(i % 4 == 0 ? "a,x\n" : "b,y\n");
  const auto set = data::open(texts("a.csv", rows));
  EXPECT_EQ(set->info().class_counts, (std::vector<std::int64_t>{10, 30}));
}

TEST_F(TextsTest, ThatAreBadAreNamed) {
  EXPECT_EQ(
      refusal(texts("a.csv", "text,label\n,x\nb,\n")),
      "a.csv: 2 of 2 samples are bad: a.csv:2: the text is empty; a.csv:3: column 'label': expected a class, found "
      "nothing. Repair or remove them, or say `bad_samples: skip`");
  EXPECT_EQ(refusal(texts("b.csv", "txt,label\na,x\n")),
            "b.csv:1: expected a column 'text', found txt, label; did you mean 'txt'?");
  EXPECT_EQ(refusal(texts("c.jsonl", "{\"text\": 3, \"label\": \"x\"}\n")),
            "c.jsonl: 1 of 1 samples is bad: c.jsonl:1: expected an object with the entry 'text', a text. Repair or "
            "remove them, or say `bad_samples: skip`");
  EXPECT_EQ(refusal(texts("d.jsonl", "[1]\n")),
            "d.jsonl: 1 of 1 samples is bad: d.jsonl:1: expected an object with the entry 'text', a text. Repair or "
            "remove them, or say `bad_samples: skip`");
  EXPECT_EQ(
      refusal(texts("surrogate.jsonl", R"({"text": "bad \ud800 x", "label": "x"})")),
      "surrogate.jsonl: 1 of 1 samples is bad: surrogate.jsonl:1: expected JSON, found half of a UTF-16 pair before "
      "byte 21; write the character in UTF-8. Repair or remove them, or say `bad_samples: skip`");
  EXPECT_EQ(
      refusal(texts("python.jsonl", "{'text': 'a', 'label': 'x'}\n")),
      "python.jsonl: 1 of 1 samples is bad: python.jsonl:1: expected JSON, found ''text': 'a', 'label'' at byte 2. "
      "Repair or remove them, or say `bad_samples: skip`");
  EXPECT_EQ(refusal(texts("cut.jsonl", "{\"text\": \"a\",\n")),
            "cut.jsonl: 1 of 1 samples is bad: cut.jsonl:1: expected JSON, found the end at byte 14. Repair or remove "
            "them, or say `bad_samples: skip`");
  write_folder(folder_ / "e", {{"1.txt", "a"}, {"x/2.txt", "b"}});
  EXPECT_EQ(
      refusal(at(folder_ / "e")),
      "e: 1 of 2 samples is bad: 1.txt: lies in no class folder. Repair or remove them, or say `bad_samples: skip`");
  EXPECT_EQ(refusal(texts("f.jsonl", "\n")), "f.jsonl: expected texts, found none");
  auto skipped = texts("g.csv", "text,label\n,x\nb,y\n");
  skipped.bad_samples = BadWhenIndexed::skip;
  const auto set = data::open(skipped);
  EXPECT_EQ(set->size(), 1);
  EXPECT_EQ(set->info().skipped.size(), 1U);
  auto digits = source(SourceKind::digits, {});
  digits.count = 2;
  const auto numbers = data::open(digits);
  EXPECT_EQ(refusal(texts("h.csv", "text,label\nb,y\n"), &numbers->info()),
            "h.csv: expected a training set of texts, too, found one of digits (synthetic)");
}

}  // namespace lockstep::test
