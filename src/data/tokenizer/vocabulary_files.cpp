#include "data/tokenizer/vocabulary_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/errno_code.hpp"
#include "core/files.hpp"
#include "data/tokenizer/checked_json.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;
using Json = CheckedObject::Json;

std::string read_required(const fs::path& path, const char* expected) {
  auto text = read_whole_file(path.string());
  if (!text) {
    throw Error(code_of_errno(errno, ExitCode::data),
                fmt::format("{}: cannot open; expected {}", path.string(), expected));
  }
  return std::move(*text);
}

/// An empty object if there is no such file.
Json read_settings(const fs::path& path) {
  const auto text = read_whole_file(path.string());
  if (!text) return Json::object();
  Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object()) throw Error(ExitCode::data, fmt::format("{}: expected an object of JSON", path.string()));
  return json;
}

/// As Python's text files are read.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\r\n", at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + (text.compare(end, 2, "\r\n") == 0 ? 2 : 1);
  }
  return lines;
}

/// What the folder says of its tokenizer besides the vocabulary.
class FolderSettings {
 public:
  explicit FolderSettings(const fs::path& folder)
      : folder_(folder),
        settings_(read_settings(folder / "tokenizer_config.json")),
        names_(read_settings(folder / "special_tokens_map.json")) {}

  /// `types`: models of config.json that have this tokenizer; `classes`: those of transformers that it is.
  void require_class(const std::string& file, const std::vector<std::string>& types,
                     const std::vector<std::string>& classes) const {
    const Json type = value_of(read_settings(folder_ / "config.json"), "model_type");
    const Json name = value_of(settings_, "tokenizer_class");
    const auto is_one_of = [](const Json& found, const std::vector<std::string>& known) {
      return found.is_null() || (found.is_string() && std::ranges::count(known, found.get<std::string>()) > 0);
    };
    if (name.is_null() ? is_one_of(type, types) : is_one_of(name, classes)) return;
    throw Error(ExitCode::data, fmt::format("{}: expected the vocabulary of {}, found that of {}, which is read from a "
                                            "tokenizer.json only; {}",
                                            (folder_ / file).string(), classes.front(),
                                            name.is_null() ? type.dump() : name.dump(), kConvertTokenizer));
  }

  bool flag(const char* key, bool absent) const {
    const Json found = value_of(settings_, key);
    return found.is_boolean() ? found.get<bool>() : absent;
  }
  Json setting(const char* key) const { return value_of(settings_, key); }
  void require_off(const char* key) const {
    if (!flag(key, false)) return;
    throw Error(ExitCode::data, fmt::format("{}: {}: expected false, found true, which is read from a tokenizer.json "
                                            "only; {}",
                                            (folder_ / "tokenizer_config.json").string(), key, kConvertTokenizer));
  }

  /// The text of a special token: "mask_token".
  std::string token(const char* key, const char* absent) const {
    for (const Json* map : {&names_, &settings_}) {
      const Json found = value_of(*map, key);
      const Json text = found.is_object() ? value_of(found, "content") : found;
      if (text.is_string()) return text.get<std::string>();
    }
    return absent;
  }

  /// Tokens that were added to the vocabulary, by whatever file says so, must be `known`.
  template <class Known>
  void require_none_added(const Known& known) const {
    const auto require = [&](const std::string& file, const std::string& text) {
      if (known(text)) return;
      throw Error(ExitCode::data, fmt::format("{}: the token {}, which was added to the vocabulary, is read from a "
                                              "tokenizer.json only; {}",
                                              (folder_ / file).string(), Json(text).dump(), kConvertTokenizer));
    };
    const Json added = read_settings(folder_ / "added_tokens.json");
    for (const auto& [text, number] : added.items()) {
      require("added_tokens.json", text);
    }
    const Json decoder = value_of(settings_, "added_tokens_decoder");
    for (const auto& [number, token] : decoder.items()) {
      const Json text = token.is_object() ? value_of(token, "content") : Json();
      require("tokenizer_config.json", text.is_string() ? text.get<std::string>() : token.dump());
    }
  }

 private:
  static Json value_of(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found == object.end() ? Json() : *found;
  }

  fs::path folder_;
  Json settings_, names_;
};

std::string written(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json special_token(const std::string& text, const Json& number) {
  return {{"id", number}, {"content", text}, {"special", true}};
}

std::string from_gpt2_files(const fs::path& folder) {
  const FolderSettings settings(folder);
  settings.require_class("vocab.json", {"gpt2"}, {"GPT2Tokenizer", "GPT2TokenizerFast"});
  settings.require_off("add_bos_token");
  const std::string file = (folder / "vocab.json").string();
  Json vocabulary = Json::parse(read_required(file, "GPT-2's vocabulary"), nullptr, false);
  if (!vocabulary.is_object()) throw Error(ExitCode::data, fmt::format("{}: expected tokens and their numbers", file));
  Json merges = Json::array();
  for (std::string& line : lines_of(read_required(folder / "merges.txt", "GPT-2's merges"))) {
    if (!line.empty() && !line.starts_with("#version")) merges.push_back(std::move(line));
  }
  constexpr const char* kEnd = "<|endoftext|>";
  settings.require_none_added([&](const std::string& text) { return text == kEnd; });
  Json added = Json::array();
  const auto end_of_text = vocabulary.find(kEnd);
  if (end_of_text != vocabulary.end()) added.push_back(special_token(kEnd, *end_of_text));
  return written(
      {{"version", "1.0"},
       {"added_tokens", added},
       {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", settings.flag("add_prefix_space", false)}}},
       {"decoder", {{"type", "ByteLevel"}}},
       {"model", {{"type", "BPE"}, {"vocab", std::move(vocabulary)}, {"merges", std::move(merges)}}}});
}

std::string from_bert_files(const fs::path& folder) {
  const FolderSettings settings(folder);
  settings.require_class("vocab.txt", {"bert", "distilbert", "electra"},
                         {"BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer", "DistilBertTokenizerFast",
                          "ElectraTokenizer", "ElectraTokenizerFast"});
  const std::string file = (folder / "vocab.txt").string();
  std::map<std::string, std::size_t> numbers;  // of equal lines the last counts
  std::size_t count = 0;
  for (const std::string& line : lines_of(read_required(file, "BERT's vocabulary"))) numbers[line] = count++;
  const std::string unknown = settings.token("unk_token", "[UNK]"), separator = settings.token("sep_token", "[SEP]"),
                    pad = settings.token("pad_token", "[PAD]"), start = settings.token("cls_token", "[CLS]"),
                    mask = settings.token("mask_token", "[MASK]");
  Json added = Json::array();
  std::vector<std::string> special = {unknown, separator, pad, start, mask};
  for (const std::string& text : special) {
    if (!numbers.contains(text)) {
      throw Error(ExitCode::data, fmt::format("{}: expected a line for each of {}, found none for {}", file,
                                              fmt::join(special, ", "), text));
    }
    added.push_back(special_token(text, numbers.at(text)));
  }
  settings.require_none_added([&](const std::string& text) { return std::ranges::count(special, text) > 0; });
  const auto around = [&](const std::string& text) {
    return Json{{"id", text}, {"ids", Json::array({numbers.at(text)})}, {"tokens", Json::array({text})}};
  };
  const auto piece = [](const std::string& text) { return Json{{"SpecialToken", {{"id", text}, {"type_id", 0}}}}; };
  const Json text_itself = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  return written(
      {{"version", "1.0"},
       {"added_tokens", added},
       {"normalizer",
        {{"type", "BertNormalizer"},
         {"clean_text", true},
         {"handle_chinese_chars", settings.flag("tokenize_chinese_chars", true)},
         {"strip_accents", settings.setting("strip_accents")},
         {"lowercase", settings.flag("do_lower_case", true)}}},
       {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
       {"post_processor",
        {{"type", "TemplateProcessing"},
         {"single", Json::array({piece(start), text_itself, piece(separator)})},
         {"special_tokens", {{start, around(start)}, {separator, around(separator)}}}}},
       {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
       {"model",
        {{"type", "WordPiece"}, {"unk_token", unknown}, {"continuing_subword_prefix", "##"}, {"vocab", numbers}}}});
}

/// "spiece.model"; "": none.
std::string sentence_piece_model(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".model") names.push_back(entry.path().filename().string());
  }
  return names.empty() ? "" : *std::min_element(names.begin(), names.end());
}

}  // namespace

std::string tokenizer_of_vocabulary_files(const fs::path& folder) {
  if (const std::string model = sentence_piece_model(folder); !model.empty()) {
    throw Error(ExitCode::data, fmt::format("{}: expected tokenizer.json in this folder, found {}, a model of "
                                            "SentencePiece or tiktoken, which is not read; {}",
                                            folder.string(), model, kConvertTokenizer));
  }
  if (fs::exists(folder / "vocab.json")) return from_gpt2_files(folder);
  if (fs::exists(folder / "vocab.txt")) return from_bert_files(folder);
  throw Error(ExitCode::data, fmt::format("{}: expected tokenizer.json, or vocab.json and merges.txt, or vocab.txt in "
                                          "this folder, found none of them",
                                          folder.string()));
}

}  // namespace lockstep::data
