#include "data/tokenizer/tokenizer_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "data/tokenizer/byte_characters.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

using Json = CheckedObject::Json;

constexpr std::int64_t kMostTokens = 1 << 22;

class TokenizerReader {
 public:
  TokenizerReader(TokenizerJson json, const std::string& where)
      : json_(std::move(json)),
        root_(json_.tree, where),
        where_(where),
        model_(root_.optional("model"), where + ": model") {}

  TokenizerParts read() {
    // Texts are as long here as the data's context says.
    for (const char* key : {"version", "truncation", "padding", "added_tokens", "model"}) root_.ignore(key);
    for_each_step("normalizer", "normalizers",
                  [this](auto& step, auto& type) { return read_normalizer_step(step, type); });
    read_model_settings();
    read_splits();
    DecoderSteps decoders;
    for_each_step("decoder", "decoders", [&](auto& step, auto& type) { return decoders.read(step, type); });
    for_each_step("post_processor", "processors",
                  [this](auto& step, auto& type) { return read_processor(step, type); });
    root_.list_unknown(unknown_);
    refuse_unknown();

    read_vocabulary();
    read_added_tokens(decoders.byte_level);
    require_tokens_around();
    parts_.lines = parts_.lines && parts_.words == nullptr && !any_added_token_has_line_end();
    parts_.only_nfc = normalizer_types_ == std::vector<std::string>{"NFC"};
    parts_.joins_by_spaces = root_.optional("decoder").is_null();
    parts_.holds_space = decoders.holds_space;
    parts_.decoders = std::move(decoders.all);
    return std::move(parts_);
  }

 private:
  std::string place(const std::string& key) const { return where_ + ": " + key; }

  /// What is wrong with one part; all are told at once.
  void note_wrong(const Error& error) { wrong_.emplace_back(error.what()); }

  void refuse_unknown() const {
    if (unknown_.empty() && wrong_.empty()) return;
    if (unknown_.empty() && wrong_.size() == 1) throw Error(ExitCode::data, wrong_.front());
    std::vector<std::string> all = unknown_;
    all.insert(all.end(), wrong_.begin(), wrong_.end());
    for (std::string& what : all) {
      if (what.starts_with(where_)) what.erase(0, where_.size() + (what.compare(where_.size(), 2, ": ") == 0 ? 2 : 1));
    }
    throw Error(ExitCode::data, fmt::format("{}: not supported, and without it the tokens would be others: {}", where_,
                                            fmt::join(all, "; ")));
  }

  void unknown_setting(CheckedObject& object, const std::string& key) {
    unknown_.push_back(fmt::format("{} {}", object.place_of(key), object.optional(key).dump()));
  }

  /// The parts of a Sequence, and of those in it, or the object itself.
  void add_steps(const Json& json, const std::string& where, const std::string& key, std::vector<CheckedObject>& all) {
    if (json.is_null()) return;
    CheckedObject object(json, where);
    if (object.optional("type") != "Sequence") return all.push_back(std::move(object));
    const Json& list = object.optional(key);
    if (!list.is_array()) object.wrong(key, "a list", list);
    for (std::size_t i = 0; i < list.size(); ++i) add_steps(list[i], fmt::format("{}.{}[{}]", where, key, i), key, all);
    object.list_unknown(unknown_);
  }

  std::vector<CheckedObject> steps_of(const std::string& name, const std::string& key) {
    std::vector<CheckedObject> all;
    add_steps(root_.optional(name), place(name), key, all);
    return all;
  }

  /// `read(step, type)` is false for a step that is not known.
  template <class Read>
  void read_step(CheckedObject& step, const Read& read) {
    try {
      const auto type = step.get<std::string>("type", "a name");
      read(step, type) ? step.list_unknown(unknown_) : unknown_setting(step, "type");
    } catch (const Error& error) {
      note_wrong(error);
    }
  }

  template <class Read>
  void for_each_step(const std::string& name, const std::string& key, const Read& read) {
    for (CheckedObject& step : steps_of(name, key)) read_step(step, read);
  }

  bool read_normalizer_step(CheckedObject& step, const std::string& type) {
    Normalizer normalizer = read_normalizer(step, type);
    if (!normalizer) return false;
    parts_.normalizers.push_back(std::move(normalizer));
    normalizer_types_.push_back(type);
    return true;
  }

  // A byte-level model takes bytes as they are, if ByteLevel comes last.
  void read_splits() {
    auto steps = steps_of("pre_tokenizer", "pretokenizers");
    std::vector<std::string> types;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      read_step(steps[i], [&](CheckedObject& step, const std::string& type) {
        types.push_back(type);
        if (i == 0 && read_words(step, type)) return true;
        const bool bytes = takes_bytes(type, i + 1 == steps.size());
        PreTokenizer split = bytes ? read_byte_level_words(step) : read_pre_tokenizer(step, type);
        byte_level_ = byte_level_ || bytes;
        if (!split) return bytes;
        parts_.splits.push_back(std::move(split));
        return true;
      });
    }
    parts_.lines =
        !types.empty() && is_any_of(types.front(), {"BertPreTokenizer", "Whitespace", "WhitespaceSplit"}) &&
        std::all_of(normalizer_types_.begin(), normalizer_types_.end(), [](const std::string& type) {
          return is_any_of(type, {"BertNormalizer", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt"});
        });
  }

  static bool is_any_of(const std::string& type, std::initializer_list<const char*> all) {
    return std::find(all.begin(), all.end(), type) != all.end();
  }

  bool takes_bytes(const std::string& type, bool last) const {
    return type == "ByteLevel" && last && model_type_ == "BPE" && byte_pairs_.prefix.empty() &&
           byte_pairs_.suffix.empty();
  }

  /// Whether the first step finds words from any place of a text.
  bool read_words(CheckedObject& step, const std::string& type) {
    if (type == "ByteLevel") {
      if (step.optional("add_prefix_space") != false || step.optional("use_regex") == false) return false;
      if (!takes_bytes(type, steps_of("pre_tokenizer", "pretokenizers").size() == 1)) return false;
      step.ignore("trim_offsets");
      byte_level_ = true;
      parts_.words = std::make_unique<SplitPattern>(kGpt2Words, step.place());
      return true;
    }
    const Json& inverted = step.optional("invert");
    if (type != "Split" || step.optional("behavior") != "Isolated" || (!inverted.is_null() && inverted != false)) {
      return false;
    }
    auto pattern = std::make_unique<SplitPattern>(read_pattern(step), step.place_of("pattern"));
    if (!pattern->searches_forward()) return false;
    parts_.words = std::move(pattern);
    return true;
  }

  void read_model_settings() {
    try {
      model_type_ = model_.get<std::string>("type", "a name", guessed_model());
      model_.ignore("vocab");
      if (model_type_ == "BPE") {
        read_byte_pair_settings();
      } else if (model_type_ == "WordPiece") {
        unknown_text_ = model_.get<std::string>("unk_token", "a text", "[UNK]");
        word_pieces_.prefix = model_.get<std::string>("continuing_subword_prefix", "a text", "##");
        word_pieces_.longest = model_.get<std::size_t>("max_input_chars_per_word", "a number", 100);
      } else if (model_type_ == "WordLevel") {
        unknown_text_ = model_.get<std::string>("unk_token", "a text", "<unk>");
      } else if (model_type_ == "Unigram") {
        unigram_.unknown = model_.get<std::int32_t>("unk_id", "a number", -1);
        unigram_.falls_back = model_.get<bool>("byte_fallback", "true or false", false);
      } else {
        return unknown_setting(model_, "type");
      }
      model_.list_unknown(unknown_);
    } catch (const Error& error) {
      note_wrong(error);
    }
  }

  // Old files don't say.
  [[nodiscard]] std::string guessed_model() {
    if (!model_.optional("merges").is_null()) return "BPE";
    if (model_.optional("vocab").is_array()) return "Unigram";
    return model_.optional("max_input_chars_per_word").is_null() ? "WordLevel" : "WordPiece";
  }

  void read_byte_pair_settings() {
    model_.ignore("merges");
    const Json& dropout = model_.optional("dropout");
    if (!dropout.is_null() && dropout != 0.0) unknown_setting(model_, "dropout");
    unknown_text_ = model_.get<std::string>("unk_token", "a text", "");
    byte_pairs_.has_unknown = !model_.optional("unk_token").is_null();
    byte_pairs_.fuses_unknown = model_.get<bool>("fuse_unk", "true or false", false);
    byte_pairs_.falls_back = model_.get<bool>("byte_fallback", "true or false", false);
    byte_pairs_.whole_words = model_.get<bool>("ignore_merges", "true or false", false);
    byte_pairs_.prefix = model_.get<std::string>("continuing_subword_prefix", "a text", "");
    byte_pairs_.suffix = model_.get<std::string>("end_of_word_suffix", "a text", "");
  }

  void read_vocabulary() {
    const Json& vocabulary = model_.optional("vocab");
    const std::string where = model_.place_of("vocab");
    if (model_type_ == "Unigram") return read_unigram(vocabulary, where);
    if (!vocabulary.is_object()) model_.wrong("vocab", "an object of tokens and numbers", vocabulary);
    const std::size_t count = json_.vocabulary ? json_.vocabulary->size() : vocabulary.size();
    numbers_.reserve(count);
    parts_.texts.reserve(count);
    parts_.known.reserve(count);
    if (json_.vocabulary) {
      for (const auto& [text, number] : *json_.vocabulary) add_token(where, text, number);
    }
    for (const auto& [text, number] : vocabulary.items()) add_token(where, text, number);
    if (model_type_ == "BPE") return read_byte_pairs(where);
    const std::int32_t unknown = number_of(unknown_text_);
    if (model_type_ == "WordLevel") {
      parts_.model = make_word_level_model(numbers_, unknown);
    } else {
      word_pieces_.numbers = numbers_;
      word_pieces_.unknown = unknown;
      parts_.model = make_word_piece_model(std::move(word_pieces_));
    }
  }

  void read_unigram(const Json& vocabulary, const std::string& where) {
    if (!vocabulary.is_array())
      model_.wrong("vocab", "a list of tokens and their logarithmic probabilities", vocabulary);
    for (std::size_t i = 0; i < vocabulary.size(); ++i) {
      const Json& token = vocabulary[i];
      if (!token.is_array() || token.size() != 2 || !token[0].is_string() || !token[1].is_number()) {
        model_.wrong(fmt::format("vocab[{}]", i), "a token and its logarithmic probability", token);
      }
      const auto text = token[0].get<std::string>();
      unigram_.tokens.emplace_back(text, token[1].get<double>());
      add_text(where, text, i);
      numbers_.set(text, i);
    }
    if (unigram_.unknown >= std::ssize(unigram_.tokens)) {
      model_.wrong("unk_id", fmt::format("a number below {}", unigram_.tokens.size()), model_.optional("unk_id"));
    }
    parts_.model = make_unigram_model(std::move(unigram_));
  }

  void read_byte_pairs(const std::string& where) {
    byte_pairs_.unknown = byte_pairs_.has_unknown ? number_of(unknown_text_) : -1;
    find_byte_tokens();
    read_merges(where);
    if (!byte_pairs_.byte_level) {
      byte_pairs_.numbers = numbers_;
    } else if (byte_pairs_.whole_words) {
      byte_pairs_.numbers.reserve(numbers_.size());
      numbers_.for_each([this](std::string_view text, std::int32_t number) {
        byte_pairs_.numbers.set(bytes_of_characters(std::string(text)), number);
      });
    }
    parts_.model = make_byte_pair_model(std::move(byte_pairs_));
  }

  // Where some byte has no token, bytes are characters like others, of which some are unknown.
  void find_byte_tokens() {
    if (byte_level_) {
      const auto& characters = byte_characters();
      for (std::size_t byte = 0; byte < 256; ++byte) byte_pairs_.byte_tokens.at(byte) = number_of(characters.at(byte));
      byte_pairs_.byte_level = std::ranges::find(byte_pairs_.byte_tokens, -1) == byte_pairs_.byte_tokens.end();
      if (!byte_pairs_.byte_level) parts_.splits.push_back(bytes_to_characters());
    }
    if (byte_pairs_.byte_level) return;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      byte_pairs_.byte_tokens.at(byte) = number_of(fmt::format("<0x{:02X}>", byte));
    }
  }

  void read_merges(const std::string& where) {
    const Json& merges = model_.optional("merges");
    if (!merges.is_array()) model_.wrong("merges", "a list of pairs", merges);
    const std::size_t count = json_.merges ? json_.merges->size() : merges.size();
    byte_pairs_.pairs.reserve(count);
    std::string both;
    for (std::size_t i = 0; i < count; ++i) {
      const auto place = [&] { return fmt::format("{}[{}]", model_.place_of("merges"), i); };
      const auto [left, right] = json_.merges ? (*json_.merges)[i] : two_tokens(merges[i], place);
      const auto part = [&](std::string_view text, const char* what) {
        const std::int32_t number = number_of(text);
        if (number >= 0) return number;
        throw Error(ExitCode::data,
                    fmt::format("{}: expected a token of {} for {}, \"{}\", found none", place(), where, what, text));
      };
      both = left;
      both += right.substr(std::min(byte_pairs_.prefix.size(), right.size()));
      const std::int32_t first = part(left, "the left part"), second = part(right, "the right part");
      byte_pairs_.pairs.add(first, second, i, part(both, "both"));
    }
  }

  template <class Place>
  static std::pair<std::string_view, std::string_view> two_tokens(const Json& json, const Place& place) {
    if (json.is_array() && json.size() == 2 && json[0].is_string() && json[1].is_string()) {
      return {json[0].get_ref<const std::string&>(), json[1].get_ref<const std::string&>()};
    }
    const auto text = json.is_string() ? std::string_view(json.get_ref<const std::string&>()) : std::string_view();
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
      throw Error(ExitCode::data, fmt::format("{}: expected two tokens, found {}", place(), json.dump()));
    }
    return {text.substr(0, space), text.substr(space + 1)};
  }

  void add_text(const std::string& where, const std::string& text, std::int64_t number) {
    const std::size_t id = number;
    if (parts_.texts.size() <= id) {
      parts_.texts.resize(id + 1);
      parts_.known.resize(id + 1);
    }
    if (parts_.known[id] && parts_.texts[id] != text) {
      throw Error(ExitCode::data,
                  fmt::format("{}: token {} is both \"{}\" and \"{}\"", where, id, parts_.texts[id], text));
    }
    parts_.texts[id] = text;
    parts_.known[id] = true;
  }

  void add_token(const std::string& where, const std::string& text, const Json& number) {
    if (!number.is_number_integer()) wrong_number(where, text, number.dump());
    add_token(where, text, number.get<std::int64_t>());
  }
  void add_token(const std::string& where, const std::string& text, std::int64_t number) {
    if (number < 0 || number >= kMostTokens) wrong_number(where, text, fmt::format("{}", number));
    add_text(where, text, number);
    numbers_.set(text, number);
  }
  [[noreturn]] static void wrong_number(const std::string& where, const std::string& text, const std::string& number) {
    throw Error(ExitCode::data, fmt::format("{}: expected numbers of tokens from 0 to {}, found \"{}\": {}", where,
                                            kMostTokens - 1, text, number));
  }

  std::int32_t number_of(std::string_view text) const { return numbers_.find(text); }

  void read_added_tokens(bool byte_level_text) {
    const Json& list = root_.optional("added_tokens");
    if (list.is_null()) return;
    if (!list.is_array()) root_.wrong("added_tokens", "a list", list);
    for (std::size_t i = 0; i < list.size(); ++i) {
      CheckedObject token(list[i], fmt::format("{}[{}]", place("added_tokens"), i));
      read_added_token(token, byte_level_text);
      token.done();
    }
    // Of equal ones the first counts, and special ones come first.
    for (auto* tokens : {&parts_.added, &parts_.added_later}) {
      std::stable_partition(tokens->begin(), tokens->end(), [](const AddedToken& added) { return added.special; });
    }
  }

  void read_added_token(CheckedObject& token, bool byte_level_text) {
    AddedToken added;
    added.text = token.get<std::string>("content", "a text");
    added.strips_left = token.get<bool>("lstrip", "true or false", false);
    added.strips_right = token.get<bool>("rstrip", "true or false", false);
    added.single_word = token.get<bool>("single_word", "true or false", false);
    added.special = token.get<bool>("special", "true or false", false);
    const bool later = token.get<bool>("normalized", "true or false", !added.special);
    added.id = token.get<std::int32_t>("id", "a number");
    if (added.text.empty()) return;  // which no text contains
    const std::int32_t known = number_of(added.text);
    if (known >= 0 && known != added.id) {
      token.wrong("id", fmt::format("{}, as in model.vocab", known), token.optional("id"));
    }
    add_token(token.place(), added.text, token.optional("id"));
    // It is decoded as it stands here.
    if (byte_level_text) {
      std::string& text = parts_.texts[added.id];
      text.clear();
      append_byte_characters(text, added.text);
    }
    if (later) {
      for (const Normalizer& normalize : parts_.normalizers) normalize(added.text);
    }
    if (added.text.empty())
      token.wrong("content", "a text that the normalizer leaves something of", token.optional("content"));
    (later ? parts_.added_later : parts_.added).push_back(std::move(added));
  }

  bool any_added_token_has_line_end() const {
    const auto has = [](const AddedToken& token) { return token.text.find('\n') != std::string::npos; };
    return std::ranges::any_of(parts_.added, has) || std::ranges::any_of(parts_.added_later, has);
  }

  bool read_processor(CheckedObject& step, const std::string& type) {
    if (type == "TemplateProcessing") {
      read_template(step);
    } else if (type == "RobertaProcessing" || type == "BertProcessing") {
      put_around({token_of(step, "cls")}, {token_of(step, "sep")});
      for (const char* key : {"trim_offsets", "add_prefix_space"}) step.ignore(key);
    } else if (type == "ByteLevel") {
      for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"}) step.ignore(key);
    } else {
      return false;
    }
    return true;
  }

  void put_around(const std::vector<std::int32_t>& before, const std::vector<std::int32_t>& behind) {
    parts_.prefix.insert(parts_.prefix.begin(), before.begin(), before.end());
    parts_.suffix.insert(parts_.suffix.end(), behind.begin(), behind.end());
  }

  static std::int32_t token_of(CheckedObject& step, const std::string& key) {
    const auto [text, id] = step.get<std::pair<std::string, std::int32_t>>(key, "a token and its number");
    return id;
  }

  void read_template(CheckedObject& step) {
    step.ignore("pair");
    CheckedObject special = step.object("special_tokens");
    const Json& pieces = step.optional("single");
    if (!pieces.is_array()) step.wrong("single", "a list", pieces);
    std::vector<std::int32_t> before, behind;
    bool has_text = false;
    for (const Json& piece : pieces) {
      if (piece.is_object() && piece.contains("Sequence") && !has_text) {
        has_text = true;
        continue;
      }
      const Json* const id = piece.is_object() && piece.contains("SpecialToken") ? &piece["SpecialToken"] : nullptr;
      if (id == nullptr || !id->is_object() || !id->contains("id") || !(*id)["id"].is_string()) {
        step.wrong("single", "one Sequence and special tokens", piece);
      }
      CheckedObject token = special.object((*id)["id"].get<std::string>());
      const auto numbers = token.get<std::vector<std::int32_t>>("ids", "a list of numbers");
      auto& into = has_text ? behind : before;
      into.insert(into.end(), numbers.begin(), numbers.end());
    }
    if (!has_text) step.wrong("single", "one Sequence and special tokens", pieces);
    put_around(before, behind);
  }

  void require_tokens_around() const {
    for (const auto* some : {&parts_.prefix, &parts_.suffix}) {
      for (const std::int32_t token : *some) {
        if (token >= 0 && token < std::ssize(parts_.texts)) continue;
        throw Error(ExitCode::data, fmt::format("{}: expected numbers of tokens below {}, found {}",
                                                place("post_processor"), parts_.texts.size(), token));
      }
    }
  }

  TokenizerJson json_;
  CheckedObject root_;
  const std::string& where_;
  CheckedObject model_;
  TokenizerParts parts_;
  std::vector<std::string> unknown_, wrong_, normalizer_types_;
  std::string model_type_, unknown_text_;
  BytePairParts byte_pairs_;
  WordPieceParts word_pieces_;
  UnigramParts unigram_;
  bool byte_level_ = false;  ///< words are to be bytes
  TokenNumbers numbers_;     ///< by text as it stands in the file
};

}  // namespace

TokenizerParts read_tokenizer_parts(TokenizerJson json, const std::string& where) {
  return TokenizerReader(std::move(json), where).read();
}

}  // namespace lockstep::data
