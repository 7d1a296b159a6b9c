#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "data/reader_support.hpp"
#include "data/split.hpp"
#include "data/tokenizer_support.hpp"

namespace lockstep::test {
namespace {

SourceOptions text(const std::string& path, std::int64_t context) {
  auto options = source(SourceKind::text, {path});
  options.context = context;
  return options;
}

TEST(ReaderText, CharactersAreNumberedByCodePoint) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt",
             "b\xC3\xA4"
             "ab\xE2\x82\xAC"
             "a");  // b ä a b € a
  const auto set = data::open(text(folder / "a.txt", 2));
  EXPECT_EQ(set->info().vocabulary, 4);
  EXPECT_EQ(set->info().token_text, (std::vector<std::string>{"a", "b", "\xC3\xA4", "\xE2\x82\xAC"}));
  EXPECT_EQ(set->size(), 2);
  Sample sample;
  set->read(1, sample);
  EXPECT_EQ(sample[0].name, "tokens");
  EXPECT_EQ(sample[1].name, "target");
  EXPECT_EQ(integers_of(sample[0].tensor), (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(integers_of(sample[1].tensor), (std::vector<std::int32_t>{1, 3}));
}

TEST(ReaderText, BytesNeedNoUtf8) {
  const TemporaryFolder folder;
  write_file(folder / "a.bin", "\xFF\x01\x80");
  auto options = text(folder / "a.bin", 2);
  options.tokenizer = Tokenizer::bytes;
  const auto set = data::open(options);
  EXPECT_EQ(set->info().vocabulary, 256);
  Sample sample;
  set->read(0, sample);
  EXPECT_EQ(integers_of(sample[0].tensor), (std::vector<std::int32_t>{255, 1}));
  EXPECT_EQ(integers_of(sample[1].tensor), (std::vector<std::int32_t>{1, 128}));
}

/// A text whose tokens are their positions: bytes 0 ... length - 1.
std::string counting(int length) {
  std::string out(static_cast<std::size_t>(length), '\0');
  std::iota(out.begin(), out.end(), '\0');
  return out;
}

// The mask is one more token; what is not hidden has no target, and what is hidden has its own token as target.
TEST(ReaderText, MaskedTokensArePredicted) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", std::string(20'000, 'a') + "bcdefghij");
  auto options = text(folder / "a.txt", 50);
  options.masked = 0.2;
  const auto set = data::open(options);
  ASSERT_EQ(set->info().vocabulary, 11);
  EXPECT_EQ(set->info().token_text.size(), 10U);
  int hidden = 0, masks = 0, others = 0, same_again = 0, windows = 0;
  for (std::int64_t id = 0; id < 390; ++id, ++windows) {
    Sample sample, again, next;
    set->read_variant(id, 3, sample);
    set->read_variant(id, 3, again);
    set->read_variant(id, 4, next);
    const auto tokens = integers_of(sample[0].tensor), target = integers_of(sample[1].tensor);
    EXPECT_EQ(tokens, integers_of(again[0].tensor));
    same_again += static_cast<int>(tokens == integers_of(next[0].tensor));
    int of_window = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (target[i] == -100) {
        EXPECT_EQ(tokens[i], 0);
        continue;
      }
      ASSERT_EQ(target[i], 0) << "the letter a";
      ++of_window;
      masks += static_cast<int>(tokens[i] == 10);
      others += static_cast<int>(tokens[i] > 0 && tokens[i] < 10);
    }
    EXPECT_GE(of_window, 1);
    hidden += of_window;
  }
  EXPECT_NEAR(hidden, windows * (0.2 * 49 + 1), 4 * std::sqrt(windows * 50 * 0.16));
  EXPECT_NEAR(masks, 0.8 * hidden, 4 * std::sqrt(0.16 * hidden));
  EXPECT_NEAR(others, 0.09 * hidden, 4 * std::sqrt(0.082 * hidden));  // a tenth, of which a tenth is the same token
  EXPECT_LT(same_again, 10) << "other tokens in another epoch";
  const auto parts = data::split(data::open(options), {0.5, "", 1});
  for (const DataSet* part : {parts.train.get(), parts.validation.get()}) EXPECT_EQ(part->info().vocabulary, 11);
}

// A model that was trained before has learnt its own mask.
TEST(ReaderText, TheMaskOfTheTokenizer) {
  const TemporaryFolder folder;
  auto tokenizer = byte_tokenizer({});
  const std::int64_t vocabulary = 257;  // the bytes and one added token
  write_file(folder / "a.txt", std::string(2'000, 'a'));
  const auto opened = [&](const std::string& added, std::int64_t mask_token = -1, const DataSetInfo* like = nullptr) {
    tokenizer["added_tokens"][0]["content"] = added;
    write_file(folder / "tokenizer.json", tokenizer.dump());
    auto options = text(folder / "a.txt", 50);
    options.tokenizer_file = folder / "tokenizer.json";
    options.masked = 0.2;
    if (mask_token >= 0) options.attributes.set("mask_token", mask_token);
    return std::shared_ptr<const DataSet>(data::open(options, {.like = like}));
  };
  const auto masks = [&](const DataSet& set, std::int32_t mask) {
    int count = 0;
    Sample sample;
    for (std::int64_t id = 0; id < set.size(); ++id) {
      set.read_variant(id, 1, sample);
      const auto tokens = integers_of(sample[0].tensor), target = integers_of(sample[1].tensor);
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        EXPECT_LT(tokens[i], set.info().vocabulary);
        count += static_cast<int>(target[i] >= 0 && tokens[i] == mask);
      }
    }
    return count;
  };
  for (const char* const own : {"[MASK]", "<mask>"}) {
    const auto set = opened(own);
    EXPECT_EQ(set->info().vocabulary, vocabulary) << own;
    EXPECT_GT(masks(*set, 256), 200) << own;
  }
  const auto more = opened("<|end|>");
  EXPECT_EQ(more->info().vocabulary, vocabulary + 1) << "none is a mask";
  EXPECT_GT(masks(*more, 257), 200);
  EXPECT_EQ(opened("<|end|>", 256)->info().vocabulary, vocabulary);
  EXPECT_GT(masks(*opened("<|end|>", 256), 256), 200);
  EXPECT_EQ(data::split(opened("[MASK]"), {0.5, "", 1}).train->info().vocabulary, vocabulary);
  DataSetInfo before = opened("[MASK]")->info();  // of a model that was trained with one more
  before.vocabulary = vocabulary + 1;
  before.masked = {};  // by a version that did not note it
  EXPECT_EQ(opened("[MASK]", -1, &before)->info().vocabulary, vocabulary + 1);
  const DataSetInfo train = opened("<|end|>", 256)->info();
  EXPECT_GT(masks(*opened("<|end|>", -1, &train), 256), 200);
  EXPECT_GT(masks(*opened("<|end|>", 97, &train), 256), 200);
  EXPECT_EQ(message_of(ExitCode::configuration, [&] { (void)opened("[MASK]", 300); }),
            folder / "a.txt: mask_token: expected one of the 257 tokens of the vocabulary, found 300");
}

// Spans hide as many tokens, but beside each other, and all of one alike.
TEST(ReaderText, MaskedSpans) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", std::string(20'000, 'a') + "bcdefghij");
  auto options = text(folder / "a.txt", 500);
  options.masked = 0.2;
  options.masked_span = 4;
  const auto set = data::open(options);
  int hidden = 0, spans = 0, neighbours = 0, alike = 0;
  for (std::int64_t id = 0; id < set->size() - 1; ++id) {
    Sample sample;
    set->read_variant(id, 1, sample);
    const auto tokens = integers_of(sample[0].tensor), target = integers_of(sample[1].tensor);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (target[i] == -100) continue;
      ++hidden;
      const bool first = i == 0 || target[i - 1] == -100;
      spans += static_cast<int>(first);
      neighbours += static_cast<int>(!first);
      if (!first) alike += static_cast<int>((tokens[i] == 10) == (tokens[i - 1] == 10));
    }
  }
  const int tokens = static_cast<int>(set->size() - 1) * 500;
  EXPECT_NEAR(hidden, 0.2 * tokens, 0.02 * tokens);
  // Spans that touch count as one: they go on with probability 3/4, or another begins, with 0.05 / 0.85.
  EXPECT_NEAR(static_cast<double>(hidden) / spans, 1 / (0.25 * (1 - 0.05 / 0.85)), 0.4);
  EXPECT_GT(alike, 0.95 * neighbours);
}

TEST(ReaderText, EachPairIsSeenAtMostOnceInAnyVariant) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", counting(100));
  auto options = text(folder / "a.txt", 8);
  options.tokenizer = Tokenizer::bytes;
  const auto set = data::open(options);
  ASSERT_EQ(set->size(), 12);  // 99 pairs
  std::set<std::int32_t> offsets;
  for (std::uint64_t variant = 0; variant < 200; ++variant) {
    std::set<std::int32_t> seen;
    Sample sample;
    for (std::int64_t id = 0; id < set->size(); ++id) {
      set->read_variant(id, variant, sample);
      const auto tokens = integers_of(sample[0].tensor), target = integers_of(sample[1].tensor);
      for (std::size_t i = 0; i < 8; ++i) {
        ASSERT_EQ(target[i], tokens[i] + 1);
        ASSERT_TRUE(seen.insert(tokens[i]).second) << variant;
      }
      if (id == 0) offsets.insert(tokens[0]);
      if (variant == 0) {
        EXPECT_EQ(tokens[0], 8 * id);
      }
    }
    EXPECT_EQ(seen.size(), 96U);
  }
  EXPECT_EQ(offsets.size(), 8U);  // every offset occurs
}

TEST(ReaderText, TheLastFractionIsHeldOut) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", counting(100));
  auto options = text(folder / "a.txt", 4);
  options.tokenizer = Tokenizer::bytes;
  const auto parts = data::split(data::open(options), {0.2, "", 1});
  Sample sample;
  parts.validation->read(0, sample);
  EXPECT_EQ(integers_of(sample[0].tensor).front(), 80);
  EXPECT_EQ(parts.train->size(), 19);
  EXPECT_EQ(parts.validation->size(), 4);
  EXPECT_NE(parts.train->info().digest, parts.validation->info().digest);
}

TEST(ReaderText, ValidationTextHasTheTrainingVocabulary) {
  const TemporaryFolder folder;
  write_file(folder / "train.txt", "abcdef");
  write_file(folder / "good.txt", "fed");
  write_file(folder / "odd.txt", "fez");
  const auto train = data::open(text(folder / "train.txt", 2));
  Sample sample;
  data::open(text(folder / "good.txt", 2), {0, &train->info()})->read(0, sample);
  EXPECT_EQ(integers_of(sample[0].tensor), (std::vector<std::int32_t>{5, 4}));
  EXPECT_EQ(without(message_of(ExitCode::data,
                               [&] {
                                 (void)data::open(text(folder / "odd.txt", 2), {0, &train->info()});
                               }),
                    folder.path()),
            "odd.txt: the character 'z' (U+007A) does not occur in the training text. Use `tokenizer: bytes`, or one "
            "text and a fraction of it");
}

TEST(ReaderTextErrors, NotUtf8) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "good\xC3(");
  EXPECT_EQ(without(data_error(text(folder / "a.txt", 2)), folder.path()),
            "a.txt: byte 4 (0xc3) is not UTF-8. Use `tokenizer: bytes`, or convert the file");
  write_file(folder / "a.txt", "\xED\xA0\x80");  // a surrogate
  EXPECT_EQ(without(data_error(text(folder / "a.txt", 2)), folder.path()),
            "a.txt: byte 0 (0xed) is not UTF-8. Use `tokenizer: bytes`, or convert the file");
}

TEST(ReaderTextErrors, TooShort) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "abc");
  EXPECT_EQ(without(data_error(text(folder / "a.txt", 3)), folder.path()),
            "a.txt: 3 tokens; one window of context 3 takes 4");
  write_file(folder / "a.txt", "");
  EXPECT_EQ(without(data_error(text(folder / "a.txt", 1)), folder.path()),
            "a.txt: 0 tokens; one window of context 1 takes 2");
}

}  // namespace
}  // namespace lockstep::test
