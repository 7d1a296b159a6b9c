#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "core/files.hpp"
#include "data/reader_support.hpp"
#include "data/tokenizer/tokenize.hpp"
#include "data/tokenizer_support.hpp"
#include "lockstep/error.hpp"

namespace lockstep::test {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;
using Json = nlohmann::ordered_json;

// h e l l o, with a space (U+0120) before it.
const std::vector<std::pair<std::string, std::string>> kHello = {
    {"l", "l"}, {"h", "e"}, {"he", "ll"}, {"hell", "o"}, {"\u0120", "hello"}};

std::unique_ptr<const data::TextTokenizer> tokenizer_made(const Json& json) {
  return data::parse_tokenizer(json.dump(), "t.json");
}

std::string tokenizer_error(const Json& json) {
  try {
    tokenizer_made(json);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    return error.what();
  }
  return "none";
}

TEST(Tokenizer, MergesByRank) {
  const auto tokenizer = tokenizer_made(byte_tokenizer(kHello));
  EXPECT_EQ(tokenizer->vocabulary(), 262);
  EXPECT_EQ(tokenizer->encode("hello hello", "text"), (std::vector<std::int32_t>{259, 260}));
  EXPECT_EQ(tokenizer->encode("lll", "text"), (std::vector<std::int32_t>{256, 75})) << "of equal ranks the leftmost";
  EXPECT_EQ(tokenizer->encode("hello<|end|>hello", "text"), (std::vector<std::int32_t>{259, 261, 259}));
  EXPECT_TRUE(tokenizer->encode("", "text").empty());
}

TEST(Tokenizer, DecodesWhatItEncodes) {
  const auto tokenizer = tokenizer_made(byte_tokenizer(kHello));
  const std::string text = "hello \xE2\x82\xAC\t\n  hello\x00\x7F \xF0\x9F\x98\x80"s;
  EXPECT_EQ(decoded(*tokenizer, tokenizer->encode(text, "text")), text);
  EXPECT_EQ(decoded(*tokenizer, {259, 261, 260}), "hello hello") << "without special tokens";
  EXPECT_EQ(tokenizer->piece(261), "<|end|>");
  EXPECT_EQ(tokenizer->piece(4000), "");
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8) {
  try {
    (void)tokenizer_made(byte_tokenizer({}))->encode("ab\xFF", "a.txt");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "a.txt: byte 2 (0xff) is not UTF-8. Use `tokenizer: bytes`, or convert the file");
  }
}

TEST(Tokenizer, RefusesByNameWhatItDoesNotKnow) {
  const std::string before = "t.json: not supported, and without it the tokens would be others: ";
  const std::vector<std::pair<std::function<void(Json&)>, std::string>> cases = {
      {[](Json& j) { j["extra"] = 1; }, before + "extra"},
      {[](Json& j) {
         j["normalizer"] = {{"type", "Odd"}};
       },
       before + "normalizer.type \"Odd\""},
      {[](Json& j) {
         j["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}, {{"type", "Odd"}, {"odd", 1}}}}};
         j["pre_tokenizer"] = {{"type", "UnicodeScripts"}};
         j["decoder"] = {{"type", "CTC"}};
         j["post_processor"] = {{"type", "Odd"}};
         j["model"]["dropout"] = 0.1;
         j["model"]["other"] = true;
       },
       before + "normalizer.normalizers[1].type \"Odd\"; model.dropout 0.1; model.other; "
                "pre_tokenizer.type \"UnicodeScripts\"; decoder.type \"CTC\"; post_processor.type \"Odd\""},
      {[](Json& j) { j["pre_tokenizer"]["other"] = true; }, before + "pre_tokenizer.other"},
      {[](Json& j) { j["model"]["type"] = "Odd"; }, before + "model.type \"Odd\""},
      {[](Json& j) { j["model"]["merges"].push_back("x y"); },
       "t.json: model.merges[0]: expected a token of t.json: model.vocab for both, \"xy\", found none"},
      {[](Json& j) { j["model"]["merges"].push_back("xy"); },
       "t.json: model.merges[0]: expected two tokens, found \"xy\""},
      {[](Json& j) { j["added_tokens"][0]["id"] = 3; },
       "t.json: added_tokens[0]: token 3 is both \"$\" and \"<|end|>\""},
      {[](Json& j) {
         j["post_processor"] = {{"type", "BertProcessing"}, {"cls", {"[CLS]", 4000}}, {"sep", {"[SEP]", 3}}};
       },
       "t.json: post_processor: expected numbers of tokens below 257, found 4000"},
  };
  for (const auto& [change, message] : cases) {
    Json json = byte_tokenizer({});
    change(json);
    EXPECT_EQ(tokenizer_error(json), message);
  }
}

TEST(Tokenizer, ReadsTruncationPaddingAndAnEmptyToken) {
  Json json = byte_tokenizer(kHello);
  json["truncation"] = {{"max_length", 1}, {"strategy", "LongestFirst"}, {"stride", 0}};
  json["padding"] = {{"strategy", {{"Fixed", 5}}}, {"pad_id", 0}};
  json["model"]["vocab"][""] = 270;
  const auto tokenizer = tokenizer_made(json);
  EXPECT_EQ(tokenizer->encode("hello hello", "text"), (std::vector<std::int32_t>{259, 260})) << "the context cuts";
  EXPECT_EQ(tokenizer->vocabulary(), 271);
}

TEST(Tokenizer, NamesOtherKindsOfFiles) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"IQ== 0\nIg== 1\n", "ranks of tiktoken"},
      {"\n\x0E\n\x05<unk>\x15\0\0\0\0"s, "a SentencePiece model"},
      {"[PAD]\n[UNK]\n", "a vocabulary of WordPiece"},
      {"{\"a\": 0}", "JSON without the entry \"model\""},
      {"hm", "something else"}};
  for (const auto& [text, kind] : cases) {
    try {
      (void)data::parse_tokenizer(text, "f");
      FAIL() << kind;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), "f: expected a tokenizer.json of Hugging Face's tokenizers, found " + kind +
                                  "; transformers writes one: "
                                  "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)");
    }
  }
}

Json with_pattern(const std::string& pattern) {
  Json json = byte_tokenizer({});
  json["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}}}}};
  return json;
}

TEST(Tokenizer, RefusesPatternsThatPcre2ReadsOtherwise) {
  const std::string place = "t.json: pre_tokenizer.pretokenizers[0].pattern: ";
  EXPECT_EQ(tokenizer_error(with_pattern("\\h+")), place + "'\\h' at character 1 of the pattern \\h+ is not supported");
  EXPECT_EQ(tokenizer_error(with_pattern("a|(?m:.)")),
            place + "'(?m:' at character 3 of the pattern a|(?m:.) is not supported");
  EXPECT_EQ(tokenizer_error(with_pattern("a{1,3}+")),
            place + "'{1,3}+' at character 2 of the pattern a{1,3}+ is not supported");
  EXPECT_EQ(tokenizer_error(with_pattern("(a")),
            place + "expected a regular expression, found (a: missing closing parenthesis");
  EXPECT_EQ(tokenizer_error(with_pattern("[^\\s\\p{L}]+|\\p{N}{1,3}|^\\w|(?<=b)c$")), "none");
}

TEST(Tokenizer, ReadsGpt2sFiles) {
  const TemporaryFolder folder;
  const Json json = byte_tokenizer(kHello);
  Json vocabulary = json["model"]["vocab"];
  vocabulary["<|endoftext|>"] = 261;
  write_file(folder / "vocab.json", vocabulary.dump());
  std::string merges = "#version: 0.2\n";
  for (const auto& pair : json["model"]["merges"]) merges += pair.get<std::string>() + "\n";
  write_file(folder / "merges.txt", merges);
  const auto tokenizer = data::parse_tokenizer(data::read_tokenizer_text(folder / ""), "gpt2");
  EXPECT_EQ(tokenizer->encode("hello hello<|endoftext|>", "text"), (std::vector<std::int32_t>{259, 260, 261}));
}

std::string folder_error(const TemporaryFolder& folder) {
  std::string text = message_of(ExitCode::data, [&] { (void)data::read_tokenizer_text(folder.path()); });
  for (std::size_t at = 0; (at = text.find(folder.path())) != std::string::npos;) {
    text.replace(at, folder.path().size(), "FOLDER");
  }
  return text;
}

constexpr const char* kConvert =
    "; transformers writes one: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)";

TEST(Tokenizer, AFolderHoldsOne) {
  const TemporaryFolder folder;
  EXPECT_EQ(folder_error(folder),
            "FOLDER: expected tokenizer.json, or vocab.json and merges.txt, or vocab.txt in this folder, found none of "
            "them");
  write_file(folder / "spiece.model", "\n\x0E");
  EXPECT_EQ(folder_error(folder), std::string("FOLDER: expected tokenizer.json in this folder, found spiece.model, a "
                                              "model of SentencePiece or tiktoken, which is not read") +
                                      kConvert);
}

const std::string kBertVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\n##s\nworld\n!\nHello\ne\n##t\n\xC3\xA9t\n";

// The numbers are those of transformers' BertTokenizerFast for such a folder.
TEST(Tokenizer, ReadsBertsFiles) {
  const TemporaryFolder folder;
  write_file(folder / "vocab.txt", kBertVocabulary);
  const std::string text = "Hellos, w\xC3\xB6rld World![MASK] \xC3\xA9t";
  const auto tokens = [&] {
    const auto tokenizer = data::parse_tokenizer(data::read_tokenizer_text(folder.path()), "bert");
    EXPECT_EQ(tokenizer->prefix(), std::vector<std::int32_t>{2});
    EXPECT_EQ(tokenizer->suffix(), std::vector<std::int32_t>{3});
    return tokenizer->encode(text, "text");
  };
  EXPECT_EQ(tokens(), (std::vector<std::int32_t>{5, 6, 1, 7, 7, 8, 4, 10, 11}));
  write_file(folder / "tokenizer_config.json", R"({"do_lower_case": false, "tokenizer_class": "BertTokenizer"})");
  EXPECT_EQ(tokens(), (std::vector<std::int32_t>{9, 6, 1, 1, 1, 8, 4, 12}));
}

TEST(Tokenizer, RefusesVocabulariesOfOtherModels) {
  const TemporaryFolder folder;
  write_file(folder / "vocab.txt", kBertVocabulary);
  write_file(folder / "config.json", R"({"model_type": "mpnet"})");
  EXPECT_EQ(folder_error(folder),
            std::string("FOLDER/vocab.txt: expected the vocabulary of BertTokenizer, found that of "
                        "\"mpnet\", which is read from a tokenizer.json only") +
                kConvert);
  write_file(folder / "config.json", R"({"model_type": "bert"})");
  write_file(folder / "added_tokens.json", R"({"<new>": 13})");
  EXPECT_EQ(folder_error(folder), std::string("FOLDER/added_tokens.json: the token \"<new>\", which was added to the "
                                              "vocabulary, is read from a tokenizer.json only") +
                                      kConvert);
  write_file(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nhello\n");
  EXPECT_EQ(folder_error(folder),
            "FOLDER/vocab.txt: expected a line for each of [UNK], [SEP], [PAD], [CLS], [MASK], "
            "found none for [MASK]");
  write_file(folder / "vocab.json", "{}");
  write_file(folder / "merges.txt", "");
  write_file(folder / "config.json", R"({"model_type": "roberta"})");
  EXPECT_EQ(folder_error(folder),
            std::string("FOLDER/vocab.json: expected the vocabulary of GPT2Tokenizer, found that of "
                        "\"roberta\", which is read from a tokenizer.json only") +
                kConvert);
  write_file(folder / "tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer", "add_bos_token": true})");
  EXPECT_EQ(folder_error(folder),
            std::string("FOLDER/tokenizer_config.json: add_bos_token: expected false, found true, "
                        "which is read from a tokenizer.json only") +
                kConvert);
}

/// A text of a million letters, digits, spaces and odd characters, with runs of each.
std::string long_text() {
  const std::vector<std::string> some = {"hello",  " hello", "  ",      "\n\n", "1",          "22",     "\u00E4",
                                         "\u20AC", "'s",     "<|end|>", "<|e",  "\U0001F600", "\u00A0", "l"};
  std::string text;
  std::uint32_t random = 1;
  while (text.size() < 300'000) {
    random = random * 1664525U + 1013904223U;
    const std::size_t times = (random >> 8U) % 50 == 0 ? 2000 : 1;
    for (std::size_t i = 0; i < times; ++i) text += some[(random >> 16U) % some.size()];
  }
  return text;
}

std::string contents_of(const std::string& path) {
  return read_whole_file(path).value_or("none");
}

std::string tokenized(const TemporaryFolder& folder, const std::string& text, int threads, std::int64_t piece) {
  write_file(folder / "t.json", byte_tokenizer(kHello).dump());
  write_file(folder / "a.txt", text);
  data::TokenizeOptions options;
  options.paths = {folder / "a.txt"};
  options.tokenizer = folder / "t.json";
  options.output = folder / "a.bin";
  options.threads = threads;
  options.piece_bytes = piece;
  fs::remove(options.output);
  const auto result = data::tokenize(options);
  EXPECT_EQ(result.bytes, static_cast<std::int64_t>(text.size()));
  EXPECT_EQ(contents_of(folder / "a.bin.tokenizer.json"), contents_of(folder / "t.json"));
  return contents_of(options.output);
}

TEST(Tokenize, PiecesAndThreadsChangeNothing) {
  const TemporaryFolder folder;
  const std::string text = long_text();
  const auto tokens = tokenizer_made(byte_tokenizer(kHello))->encode(text, "text");
  const std::vector<std::uint16_t> narrow(tokens.begin(), tokens.end());
  const std::string expected(reinterpret_cast<const char*>(narrow.data()), narrow.size() * 2);
  for (const std::int64_t piece : {3, 100, 1009, 40'000, 1 << 20}) {
    EXPECT_TRUE(tokenized(folder, text, piece % 2 == 0 ? 3 : 1, piece) == expected) << "pieces of " << piece;
  }
}

TEST(Tokenize, LinesAreTextsAndEndIsWritten) {
  const TemporaryFolder folder;
  write_file(folder / "t.json", byte_tokenizer(kHello).dump());
  write_file(folder / "a.jsonl", "{\"body\": \"hello\"}\n\n{\"body\": \" hello\"}\n");
  data::TokenizeOptions options;
  options.paths = {folder / "a.jsonl"};
  options.tokenizer = folder / "t.json";
  options.output = folder / "a.bin";
  options.field = "body";
  options.end = "<|end|>";
  EXPECT_EQ(data::tokenize(options).tokens, 4);
  EXPECT_EQ(contents_of(options.output), std::string("\x03\x01\x05\x01\x04\x01\x05\x01", 8));
  std::string text;
  data::detokenize(options.output, 0, -1, [&](const std::string& piece) { text += piece; });
  EXPECT_EQ(text, "hello hello");

  write_file(folder / "a.jsonl", "{\"body\": \"hello\"}\n{\"body\": 3}\n");
  options.output = folder / "b.bin";
  try {
    data::tokenize(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.what(),
              folder / "a.jsonl" + ":2: expected a JSON object with a text \"body\", found {\"body\": 3}");
  }
}

TEST(Tokenize, LinesDoNotKnowOfEachOther) {
  const TemporaryFolder folder;
  write_file(folder / "t.json", byte_tokenizer({}).dump());
  write_file(folder / "a.jsonl", "{\"text\": \"abcdefg\"}\n{\"text\": \"<|end|>\"}\n{\"text\": \"abcdefg\"}\n");
  data::TokenizeOptions options;
  options.paths = {folder / "a.jsonl"};
  options.tokenizer = folder / "t.json";
  options.output = folder / "a.bin";
  options.threads = 1;
  EXPECT_EQ(data::tokenize(options).tokens, 7 + 1 + 7);
}

TEST(Tokenize, TellsHowFarItIs) {
  const TemporaryFolder folder;
  const std::string text = long_text(), line = "{\"text\": \"hello\"}\n";
  write_file(folder / "t.json", byte_tokenizer(kHello).dump());
  write_file(folder / "a.txt", text);
  write_file(folder / "b.jsonl", line);
  data::TokenizeOptions options;
  options.paths = {folder / "a.txt", folder / "b.jsonl"};
  options.tokenizer = folder / "t.json";
  options.output = folder / "ab.bin";
  options.piece_bytes = 1000;  // of which a step has 32
  std::vector<std::int64_t> done;
  const auto bytes = std::ssize(text) + std::ssize(line);
  options.progress = [&](std::int64_t so_far, std::int64_t all) {
    EXPECT_EQ(all, bytes);
    EXPECT_GT(so_far, done.empty() ? 0 : done.back());
    done.push_back(so_far);
  };
  EXPECT_EQ(data::tokenize(options).bytes, bytes);
  EXPECT_GE(std::ssize(done), std::ssize(text) / 33'000);
  EXPECT_EQ(done.back(), bytes);
}

TEST(Tokenize, GoesOnWhereItWasBrokenOff) {
  const TemporaryFolder folder;
  const std::string text = long_text();
  const std::string whole = tokenized(folder, text, 2, 1 << 20);
  data::TokenizeOptions options;
  options.paths = {folder / "a.txt"};
  options.tokenizer = folder / "t.json";
  options.output = folder / "b.bin";
  options.piece_bytes = 1000;
  options.note_seconds = 0;
  struct Broken {};
  std::int64_t stops = 0;
  options.progress = [&](std::int64_t done, std::int64_t all) {
    if (done > all / 4 * (stops + 1) && done < all) {
      ++stops;
      throw Broken{};
    }
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(data::tokenize(options), Broken);
    std::ofstream(options.output + ".partial", std::ios::app) << "what was written and not noted";
  }
  const auto result = data::tokenize(options);
  EXPECT_GT(result.resumed, std::ssize(text) / 2);
  EXPECT_TRUE(contents_of(options.output) == whole);
  EXPECT_FALSE(fs::exists(options.output + ".partial.json"));
}

TEST(Tokenize, TheReaderTakesTheTokenizer) {
  const TemporaryFolder folder;
  (void)tokenized(folder, "hello hello<|end|>hello", 1, 100);
  auto options = source(SourceKind::tokens, {folder / "a.bin"});
  options.context = 3;
  const auto set = data::open(options);
  EXPECT_EQ(set->info().vocabulary, 262) << "of the tokenizer, not of the tokens that occur";
  EXPECT_EQ(set->info().tokenizer, contents_of(folder / "t.json"));
  auto text = source(SourceKind::text, {folder / "a.txt"});
  text.context = 3;
  text.tokenizer_file = folder / "t.json";
  const auto direct = data::open(text);
  EXPECT_EQ(direct->info().vocabulary, 262);
  Sample a, b;
  set->read(0, a);
  direct->read(0, b);
  EXPECT_EQ(integers_of(a[0].tensor), (std::vector<std::int32_t>{259, 260, 261}));
  EXPECT_EQ(integers_of(a[1].tensor), integers_of(b[1].tensor));
}

}  // namespace
}  // namespace lockstep::test
