#include "data/tokenizer/tokenizer_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/whole_file.hpp"
#include "data/readers/utf8.hpp"
#include "data/tokenizer/checked_json.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// GPT-2's words: contractions, letters, numbers, the rest, white space.
constexpr const char* kGpt2Words = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::int64_t kMostTokens = 1 << 22;

std::string read_tokenizer_part(const std::filesystem::path& path, const char* expected) {
  auto text = read_whole_file(path.string());
  if (!text) throw Error(ExitCode::data, fmt::format("{}: cannot open; expected {}", path.string(), expected));
  return std::move(*text);
}

OrderedJson parse_tokenizer_json(const std::string& text, const std::string& where) {
  try {
    return OrderedJson::parse(text);
  } catch (const OrderedJson::exception&) {
    throw Error(ExitCode::data, fmt::format("{}: expected JSON, a tokenizer.json of Hugging Face's tokenizers", where));
  }
}

/// As the library's own conversion of GPT-2's files does.
std::string from_gpt2_files(const std::filesystem::path& folder) {
  OrderedJson vocabulary = parse_tokenizer_json(read_tokenizer_part(folder / "vocab.json", "GPT-2's vocabulary"),
                                                (folder / "vocab.json").string());
  OrderedJson merges = OrderedJson::array();
  const std::string text = read_tokenizer_part(folder / "merges.txt", "GPT-2's merges");
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty() && !line.starts_with("#version")) merges.push_back(std::move(line));
    at = end + 1;
  }
  OrderedJson added = OrderedJson::array();
  const auto end_of_text = vocabulary.is_object() ? vocabulary.find("<|endoftext|>") : vocabulary.end();
  if (end_of_text != vocabulary.end()) {
    added.push_back({{"id", *end_of_text}, {"content", "<|endoftext|>"}, {"special", true}});
  }
  const OrderedJson json = {
      {"version", "1.0"},
      {"added_tokens", added},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model", {{"type", "BPE"}, {"vocab", std::move(vocabulary)}, {"merges", std::move(merges)}}}};
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

/// Printable characters of Latin-1 stand for themselves, the other bytes for the code points from 256 on, in order.
std::array<std::int32_t, 0x180> make_bytes_of_characters() {
  std::array<std::int32_t, 0x180> bytes{};
  bytes.fill(-1);
  std::size_t next = 256;
  for (std::int32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    bytes.at(printable ? static_cast<std::size_t>(byte) : next++) = byte;
  }
  return bytes;
}

/// The bytes that a token of a byte-level vocabulary stands for; the text as it is if some character is of none.
std::string token_bytes_of(const std::string& token) {
  static const auto kBytes = make_bytes_of_characters();
  std::string bytes;
  for (const char32_t c : from_utf8(token, "a token")) {
    if (c >= kBytes.size() || kBytes.at(c) < 0) return token;
    bytes += static_cast<char>(kBytes.at(c));
  }
  return bytes;
}

class TokenizerFile {
 public:
  TokenizerFile(const OrderedJson& json, const std::string& where) : root_(json, where), where_(where) {}

  TokenizerParts read() {
    root_.ignore("version");
    root_.require("truncation", nullptr);
    root_.require("padding", nullptr);
    read_normalizer();
    read_words();
    read_decoder();
    read_model();
    read_added_tokens();
    read_post_processor();
    root_.done();
    return std::move(parts_);
  }

 private:
  std::string place(const std::string& key) const { return where_ + ": " + key; }

  [[noreturn]] void unknown_type(CheckedObject& object, const std::string& expected) {
    object.wrong("type", expected, object.optional("type"));
  }

  /// The parts of a Sequence, under `key`, or the object itself.
  std::vector<CheckedObject> parts_of(const std::string& name, const std::string& key) {
    std::vector<CheckedObject> all;
    const OrderedJson& json = root_.optional(name);
    if (json.is_null()) return all;
    CheckedObject object(json, place(name));
    if (object.optional("type") != "Sequence") return all.push_back(std::move(object)), all;
    const OrderedJson& list = object.optional(key);
    if (!list.is_array()) object.wrong(key, "a list", list);
    for (std::size_t i = 0; i < list.size(); ++i) {
      all.emplace_back(list[i], fmt::format("{}.{}[{}]", place(name), key, i));
    }
    object.done();
    return all;
  }

  void read_normalizer() {
    bool prepends = false, replaces = false;
    for (CheckedObject& step : parts_of("normalizer", "normalizers")) {
      const auto type = step.get<std::string>("type", "a name");
      if (type == "Prepend") {
        step.require("prepend", "\u2581");
        prepends = true;
      } else if (type == "Replace" && prepends) {
        step.require("pattern", OrderedJson{{"String", " "}});
        step.require("content", "\u2581");
        replaces = true;
      } else {
        unknown_type(step, "none, or Prepend and then Replace, of spaces by \u2581");
      }
      step.done();
    }
    if (prepends != replaces) {
      throw Error(ExitCode::data,
                  fmt::format("{}: expected Prepend and then Replace, found only the first", place("normalizer")));
    }
    parts_.characters = prepends;
  }

  void read_words() {
    bool bytes = false;
    std::optional<std::string> pattern;
    std::string pattern_place;
    for (CheckedObject& step : parts_of("pre_tokenizer", "pretokenizers")) {
      const auto type = step.get<std::string>("type", "a name");
      if (parts_.characters || bytes || (type != "Split" && type != "ByteLevel")) {
        unknown_type(
            step, parts_.characters ? "no pre_tokenizer beside the normalizer" : "Split or ByteLevel, which is last");
      }
      if (type == "ByteLevel") {
        bytes = true;
        step.require("add_prefix_space", false);
        step.ignore("trim_offsets");
        if (step.get<bool>("use_regex", "true or false", true)) {
          if (pattern) step.wrong("use_regex", "false beside Split", true);
          pattern = kGpt2Words;
          pattern_place = step.place();
        }
      } else {
        if (pattern) unknown_type(step, "one Split");
        CheckedObject what = step.object("pattern");
        pattern = what.get<std::string>("Regex", "a regular expression");
        pattern_place = what.place_of("Regex");
        what.done();
        step.require("behavior", "Isolated");
        step.require("invert", false);
      }
      step.done();
    }
    if (!bytes && !parts_.characters) {
      throw Error(ExitCode::data, fmt::format("{}: expected ByteLevel, found none; tokenizers of characters have a "
                                              "normalizer that replaces spaces by \u2581",
                                              place("pre_tokenizer")));
    }
    if (pattern) parts_.words = std::make_unique<SplitPattern>(*pattern, pattern_place);
  }

  // Text is put together as the kind of tokenizer asks for; the file must say the same.
  void read_decoder() {
    std::string steps;
    for (CheckedObject& step : parts_of("decoder", "decoders")) {
      const auto type = step.get<std::string>("type", "a name");
      steps += (steps.empty() ? "" : ", ") + type;
      if (type == "Replace") {
        step.require("pattern", OrderedJson{{"String", "\u2581"}});
        step.require("content", " ");
      } else if (type == "Strip") {
        step.require("content", " ");
        step.require("start", 1);
        step.require("stop", 0);
      } else if (type == "ByteLevel") {
        for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"}) step.ignore(key);
      }
      step.done();
    }
    const std::string expected = parts_.characters ? "Replace, ByteFallback, Fuse, Strip" : "ByteLevel";
    if (steps == expected) return;
    throw Error(ExitCode::data,
                fmt::format("{}: expected {}, found {}", place("decoder"), expected, steps.empty() ? "none" : steps));
  }

  void read_model() {
    CheckedObject model = root_.object("model");
    model.optional("type").is_null() ? model.ignore("type") : model.require("type", "BPE");
    for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
      if (model.optional(key) != OrderedJson("")) model.require(key, nullptr);
    }
    // Both are for characters that no token stands for; there are none.
    model.ignore("unk_token");
    model.ignore("fuse_unk");
    parts_.whole_words = model.get<bool>("ignore_merges", "true or false", false);
    if (parts_.whole_words && parts_.characters) model.wrong("ignore_merges", "false beside byte_fallback", true);
    const bool falls_back = model.get<bool>("byte_fallback", "true or false", false);
    if (falls_back != parts_.characters) {
      model.wrong("byte_fallback", parts_.characters ? "true" : "false beside ByteLevel", falls_back);
    }
    const OrderedJson& vocabulary = model.optional("vocab");
    if (!vocabulary.is_object()) model.wrong("vocab", "an object of tokens and numbers", vocabulary);
    for (const auto& [text, number] : vocabulary.items()) add_piece(model.place_of("vocab"), text, number);
    find_byte_tokens(model.place_of("vocab"));
    read_merges(model);
    model.done();
    for (auto& [text, number] : numbers_) {
      if (!parts_.characters) {
        parts_.pieces[static_cast<std::size_t>(number)] = token_bytes_of(text);
        parts_.numbers.emplace(token_bytes_of(text), number);
      } else {
        parts_.numbers.emplace(text, number);
      }
    }
    if (parts_.characters) write_pieces_of_characters();
  }

  void add_piece(const std::string& where, const std::string& text, const OrderedJson& number) {
    const bool sound = number.is_number_integer() && number.get<std::int64_t>() >= 0 &&
                       number.get<std::int64_t>() < kMostTokens && !text.empty();
    if (!sound) {
      throw Error(ExitCode::data, fmt::format("{}: expected numbers of tokens from 0 to {}, found \"{}\": {}", where,
                                              kMostTokens - 1, text, number.dump()));
    }
    const auto id = number.get<std::int32_t>();
    if (std::ssize(parts_.pieces) <= id) parts_.pieces.resize(static_cast<std::size_t>(id) + 1);
    auto& piece = parts_.pieces[static_cast<std::size_t>(id)];
    if (!piece.empty() && piece != text) {
      throw Error(ExitCode::data, fmt::format("{}: token {} is both \"{}\" and \"{}\"", where, id, piece, text));
    }
    piece = text;
    numbers_.emplace(text, id);
  }

  std::int32_t number_of(const std::string& text, const std::string& where, const std::string& what) const {
    const auto found = numbers_.find(text);
    if (found != numbers_.end()) return found->second;
    throw Error(ExitCode::data, fmt::format("{}: expected a token for {}, \"{}\", found none", where, what, text));
  }

  void find_byte_tokens(const std::string& where) {
    std::array<std::string, 256> names;
    const auto bytes = make_bytes_of_characters();
    for (std::size_t c = 0; c < bytes.size(); ++c) {
      if (bytes.at(c) >= 0) names.at(static_cast<std::size_t>(bytes.at(c))) = to_utf8(static_cast<char32_t>(c));
    }
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::string name = parts_.characters ? fmt::format("<0x{:02X}>", byte) : names.at(byte);
      parts_.byte_tokens.at(byte) = number_of(name, where, fmt::format("byte {}", byte));
    }
  }

  void read_merges(CheckedObject& model) {
    const OrderedJson& merges = model.optional("merges");
    if (!merges.is_array()) model.wrong("merges", "a list of pairs", merges);
    for (std::size_t i = 0; i < merges.size(); ++i) {
      const std::string where = fmt::format("{}[{}]", model.place_of("merges"), i);
      const auto [left, right] = two_tokens(merges[i], where);
      parts_.pairs.add(number_of(left, where, "the left part"), number_of(right, where, "the right part"),
                       static_cast<std::int32_t>(i), number_of(left + right, where, "both"));
    }
  }

  static std::pair<std::string, std::string> two_tokens(const OrderedJson& json, const std::string& where) {
    if (json.is_array() && json.size() == 2 && json[0].is_string() && json[1].is_string()) return {json[0], json[1]};
    const std::string text = json.is_string() ? json.get<std::string>() : "";
    const std::size_t space = text.find(' ');
    if (space == std::string::npos || space == 0 || text.find(' ', space + 1) != std::string::npos) {
      throw Error(ExitCode::data, fmt::format("{}: expected two tokens, found {}", where, json.dump()));
    }
    return {text.substr(0, space), text.substr(space + 1)};
  }

  void write_pieces_of_characters() {
    static constexpr std::string_view kMark = "\xE2\x96\x81";
    for (std::string& piece : parts_.pieces) {
      for (std::size_t at = 0; (at = piece.find(kMark, at)) != std::string::npos; ++at) {
        piece.replace(at, kMark.size(), " ");
      }
    }
    for (std::size_t byte = 0; byte < 256; ++byte) {
      parts_.pieces[static_cast<std::size_t>(parts_.byte_tokens.at(byte))] = std::string(1, static_cast<char>(byte));
    }
  }

  void read_added_tokens() {
    const OrderedJson& list = root_.optional("added_tokens");
    if (list.is_null()) return;
    if (!list.is_array()) root_.wrong("added_tokens", "a list", list);
    for (std::size_t i = 0; i < list.size(); ++i) {
      CheckedObject token(list[i], fmt::format("{}[{}]", place("added_tokens"), i));
      AddedToken added;
      added.text = token.get<std::string>("content", "a text");
      added.strips_left = token.get<bool>("lstrip", "true or false", false);
      added.strips_right = token.get<bool>("rstrip", "true or false", false);
      added.special = token.get<bool>("special", "true or false", false);
      token.require("single_word", false);
      const bool later = token.get<bool>("normalized", "true or false", !added.special);
      if (later && parts_.characters) token.wrong("normalized", "false beside a normalizer", true);
      added.id = token.get<std::int32_t>("id", "a number");
      const auto known = numbers_.find(added.text);
      if (known != numbers_.end() && known->second != added.id) {
        token.wrong("id", fmt::format("{}, as in model.vocab", known->second), added.id);
      }
      if (added.id >= 0 && added.id < std::ssize(parts_.pieces)) {
        parts_.pieces[static_cast<std::size_t>(added.id)].clear();  // it is written as it stands here
      }
      add_piece(token.place(), added.text, added.id);
      added_.emplace(added.text, added.id);
      token.done();
      (later ? parts_.added_later : parts_.added).push_back(std::move(added));
    }
  }

  void read_post_processor() {
    for (CheckedObject& step : parts_of("post_processor", "processors")) {
      const auto type = step.get<std::string>("type", "a name");
      if (type == "TemplateProcessing") {
        read_template(step);
      } else if (type == "RobertaProcessing" || type == "BertProcessing") {
        parts_.prefix = {token_of(step, "cls")};
        parts_.suffix = {token_of(step, "sep")};
        for (const char* key : {"trim_offsets", "add_prefix_space"}) step.ignore(key);
      } else if (type == "ByteLevel") {
        for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"}) step.ignore(key);
      } else {
        unknown_type(step, "ByteLevel, TemplateProcessing, RobertaProcessing or BertProcessing");
      }
      step.done();
    }
  }

  static std::int32_t token_of(CheckedObject& step, const std::string& key) {
    const auto [text, id] = step.get<std::pair<std::string, std::int32_t>>(key, "a token and its number");
    return id;
  }

  void read_template(CheckedObject& step) {
    step.ignore("pair");
    step.ignore("special_tokens");  // their numbers are those of added_tokens
    const OrderedJson& pieces = step.optional("single");
    if (!pieces.is_array()) step.wrong("single", "a list", pieces);
    std::vector<std::int32_t>* into = &parts_.prefix;
    for (const OrderedJson& piece : pieces) {
      if (piece.contains("Sequence")) {
        into = &parts_.suffix;
      } else if (piece.contains("SpecialToken") && piece["SpecialToken"].contains("id") &&
                 piece["SpecialToken"]["id"].is_string() &&
                 added_.contains(piece["SpecialToken"]["id"].get<std::string>())) {
        into->push_back(added_.at(piece["SpecialToken"]["id"].get<std::string>()));
      } else {
        step.wrong("single", "Sequence and added tokens", piece);
      }
    }
  }

  CheckedObject root_;
  const std::string& where_;
  TokenizerParts parts_;
  std::unordered_map<std::string, std::int32_t> numbers_, added_;  // by text as it stands in the file
};

}  // namespace

std::string read_tokenizer_text(const std::string& path) {
  const std::filesystem::path given(path);
  if (!std::filesystem::is_directory(given)) return read_tokenizer_part(given, "a tokenizer.json");
  if (std::filesystem::exists(given / "tokenizer.json"))
    return read_tokenizer_part(given / "tokenizer.json", "a tokenizer.json");
  if (std::filesystem::exists(given / "vocab.json")) return from_gpt2_files(given);
  throw Error(
      ExitCode::data,
      fmt::format("{}: expected tokenizer.json, or vocab.json and merges.txt in this folder, found neither", path));
}

void require_tokenizer_like(const DataSetInfo* train, const std::string& text, const std::string& source) {
  if (train == nullptr || train->tokenizer == text) return;
  throw Error(ExitCode::data, fmt::format("{}: its tokenizer is not that of the training set, {}, so its tokens would "
                                          "mean something else",
                                          source, train->source));
}

std::unique_ptr<const BytePairTokenizer> parse_tokenizer(const std::string& text, const std::string& where) {
  const OrderedJson json = parse_tokenizer_json(text, where);
  return std::make_unique<BytePairTokenizer>(TokenizerFile(json, where).read());
}

}  // namespace lockstep::data
