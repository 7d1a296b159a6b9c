// Many texts of any length, each with a class: files in class folders or an archive of such, the rows of a CSV, or the
// lines of a .jsonl file. Features: tokens i32 [context], of which the first `length` are the text's, length i32 [],
// and label. A longer text is cut off at its end; behind a shorter one stands token 0, which means nothing there.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <tuple>

#include "core/digest.hpp"
#include "core/untrusted.hpp"
#include "data/archive.hpp"
#include "data/readers/characters.hpp"
#include "data/readers/class_folders.hpp"
#include "data/readers/common.hpp"
#include "data/readers/prepare.hpp"
#include "data/readers/readers.hpp"
#include "data/readers/table_columns.hpp"
#include "data/readers/table_text.hpp"
#include "data/readers/utf8.hpp"
#include "data/sample_identities.hpp"
#include "data/tokenizer/tokenizer_file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

struct LabelledText {
  std::string name, text, class_name;
  std::string fault;      ///< set if it is bad
  bool is_value = false;  ///< the class is the value of a row or a line, not the name of a folder
};

class Texts final : public DataSet, public KnowsIdentities {
 public:
  Texts(DataSetInfo info, ByteCounter counter) : info_(std::move(info)), counter_(std::move(counter)) {}

  /// `label` -1: none.
  void add(std::string name, std::span<const std::int32_t> tokens, std::int32_t label) {
    names_.push_back(std::move(name));
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    ends_.push_back(tokens_.size());
    labels_.push_back(label);
    if (label >= 0) ++info_.class_counts[label];
  }
  void finish(std::vector<std::string> skipped, std::vector<std::string> warnings) {
    info_.skipped = std::move(skipped);
    info_.warnings = std::move(warnings);
    warn_of_skipped(names_.size() + info_.skipped.size(), info_);
    Sha256 digest;
    digest.add(fmt::format("{}\n{}\n{}\n", info_.format, context(), fmt::join(info_.class_names, "\n")));
    for (const auto& text : info_.token_text) digest.add(text);
    digest.add(info_.tokenizer);
    digest.add(std::as_bytes(std::span(tokens_)));
    digest.add(std::as_bytes(std::span(ends_)));
    digest.add(std::as_bytes(std::span(labels_)));
    info_.digest = digest.hex();
  }

  const DataSetInfo& info() const override { return info_; }
  std::int64_t size() const override { return std::ssize(names_); }
  std::uint64_t bytes_read() const override { return *counter_; }
  std::string name(std::int64_t id) const override { return names_.at(id); }
  std::int64_t label(std::int64_t id) const override { return labels_.at(id); }

  void add_identities(std::int64_t id, std::vector<std::uint64_t>& out) const override {
    const auto bytes = std::as_bytes(tokens_of(id));
    out.push_back(identity_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  }

  void read(std::int64_t id, Sample& out) const override {
    LOCKSTEP_CHECK(id >= 0 && id < size(), "the number of a text");
    prepare_names(out, info_.features);
    for (std::size_t i = 0; i < out.size(); ++i) prepare(out[i].tensor, info_.features[i].spec);
    const auto own = tokens_of(id);
    const auto tokens = out[0].tensor.as<std::int32_t>();
    std::copy(own.begin(), own.end(), tokens.begin());
    std::fill(tokens.begin() + std::ssize(own), tokens.end(), 0);
    out[1].tensor.as<std::int32_t>()[0] = own.size();
    if (out.size() > 2) set_label(out[2].tensor, labels_[id]);
  }

 private:
  std::span<const std::int32_t> tokens_of(std::int64_t id) const {
    const std::size_t at = id;
    const std::size_t begin = at == 0 ? 0 : ends_[at - 1];
    return std::span(tokens_).subspan(begin, ends_[at] - begin);
  }
  std::int64_t context() const { return info_.features[0].spec.shape[0]; }

  DataSetInfo info_;
  ByteCounter counter_;
  std::vector<std::string> names_;
  std::vector<std::int32_t> tokens_;  ///< of all texts
  std::vector<std::size_t> ends_;     ///< of each
  std::vector<std::int32_t> labels_;
};

/// Reads files of all kinds. Without `source.label_column` texts have no classes.
class TextFiles {
 public:
  TextFiles(const SourceOptions& source, ByteCounter counter) : source_(source), counter_(std::move(counter)) {
    for (const auto& path : source.paths) add(path);
  }
  std::vector<LabelledText> texts;
  std::vector<std::string> warnings;

 private:
  bool has_labels() const { return !source_.label_column.empty(); }

  void add(const std::string& path) {
    const std::string ending = kind_of_ending(path);
    if (ending == ".csv" || ending == ".tsv" || ending == ".parquet") return add_rows(path);
    if (ending == ".jsonl" || ending == ".ndjson") return add_lines(path);
    if (ending == ".json") {
      throw Error(ExitCode::data, fmt::format("{}: expected texts, or a CSV, Parquet or .jsonl file of such, found a "
                                              ".json file; write a .jsonl file, an object a line",
                                              path));
    }
    if (!has_labels() && !std::filesystem::is_directory(path)) {
      return texts.push_back({path, whole(path), "", ""});
    }
    add_tree(*open_tree(path, counter_));
  }

  void add_tree(const FileTree& tree) {
    std::vector<std::string> names;
    for (const auto& entry : tree.files()) names.push_back(entry.name);
    for (const auto& fault : tree.faults()) names.push_back(fault.name);
    const auto classes =
        has_labels() ? classes_of(names, source_, tree.path(), warnings) : std::vector<std::string>(names.size());
    std::vector<std::byte> scratch;
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::string text, fault = has_labels() && classes[i].empty() ? "lies in no class folder" : "";
      if (i < tree.files().size()) {
        const auto bytes = tree.read(tree.files()[i], 0, tree.files()[i].size, scratch);
        text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      } else {
        fault = tree.faults()[i - tree.files().size()].text;
      }
      texts.push_back({names[i], std::move(text), classes[i], std::move(fault)});
    }
    warnings.insert(warnings.end(), tree.warnings().begin(), tree.warnings().end());
  }

  std::string whole(const std::string& path) const { return read_packed_text(path, counter_); }

  void add_rows(const std::string& path) {
    const TableFile file = read_table(path, counter_, source_.text_column);
    warnings.insert(warnings.end(), file.warnings.begin(), file.warnings.end());
    const std::size_t text = readable_column(file, source_.text_column);
    const std::size_t label = has_labels() ? readable_column(file, source_.label_column) : text;
    for (const CsvRow& row : file.rows) {
      LabelledText& made =
          texts.emplace_back(LabelledText{fmt::format("{}:{}", path, row.line), row.fields[text], "", row.fault});
      if (has_labels()) take_class(row.fields[label], "column", made);
    }
  }

  /// Of a row or a line, by the rules of tables.
  void take_class(const std::string& value, const char* where, LabelledText& text) const {
    text.class_name = without_spaces(value);
    text.is_value = true;
    if (!text.fault.empty() || !is_missing(value)) return;
    text.fault = fmt::format("{} '{}': expected a class, found {}", where, source_.label_column,
                             text.class_name.empty() ? "nothing" : text.class_name);
    text.class_name.clear();
  }

  void add_lines(const std::string& path) {
    const std::string all = whole(path);
    int number = 0;
    for (std::size_t begin = 0; begin < all.size(); ++number) {
      const std::size_t end = std::min(all.find('\n', begin), all.size());
      const std::string_view line = std::string_view(all).substr(begin, end - begin);
      begin = end + 1;
      if (!without_spaces(line).empty() && line != "\r") texts.push_back(of_line(path, number + 1, line));
    }
  }

  /// What is wrong with text that is no JSON.
  static std::string fault_of_json(std::string_view text) {
    constexpr std::size_t kShown = 20;
    try {
      std::ignore = nlohmann::json::parse(text);
    } catch (const nlohmann::json::parse_error& error) {
      if (std::string_view(error.what()).find("surrogate") != std::string_view::npos) {
        return fmt::format("expected JSON, found half of a UTF-16 pair before byte {}; write the character in UTF-8",
                           error.byte);
      }
      const std::size_t at = std::min(error.byte == 0 ? 0 : error.byte - 1, text.size());
      const auto rest = text.substr(at, kShown);
      return fmt::format("expected JSON, found {} at byte {}", rest.empty() ? "the end" : fmt::format("'{}'", rest),
                         at + 1);
    }
    return "expected JSON";
  }

  LabelledText of_line(const std::string& path, int number, std::string_view line) const {
    const auto json = nests_too_deep(line) ? nlohmann::json() : nlohmann::json::parse(line, nullptr, false);
    LabelledText made{fmt::format("{}:{}", path, number), "", "", ""};
    if (json.is_discarded()) {
      made.fault = fault_of_json(line);
      return made;
    }
    const auto take = [&](const std::string& entry, std::string& to, bool is_class) {
      const auto found = json.is_object() ? json.find(entry) : json.end();
      const bool is_there = json.is_object() && found != json.end();
      if (is_there && found->is_string()) return found->get_to(to), void();
      if (is_there && is_class && found->is_null()) return;
      if (is_there && is_class && found->is_primitive()) return void(to = found->dump());
      made.fault = fmt::format("expected an object with the entry '{}', a text{}", entry,
                               is_class ? ", a number, true or false" : "");
    };
    if (has_labels()) {
      std::string value;
      take(source_.label_column, value, true);
      take_class(value, "entry", made);
    }
    take(source_.text_column, made.text, false);
    return made;
  }

  const SourceOptions& source_;
  ByteCounter counter_;
};

/// From a text to its tokens, at most `context`. What a tokenizer puts around a text stays when it is cut.
class TextTokens {
 public:
  TextTokens(const DataSetInfo& info, std::size_t context)
      : tokenizer_(info.tokenizer.empty() ? nullptr : parse_tokenizer(info.tokenizer, info.source)),
        characters_(info.token_text.empty() ? nullptr : std::make_unique<CharacterNumbers>(info.token_text)),
        context_(context) {}

  std::size_t longest = 0, cut = 0;  ///< in tokens; texts

  /// Throws Error(data) for what is no text of these tokens.
  std::span<const std::int32_t> of(const LabelledText& text) {
    tokens_.clear();
    if (tokenizer_) {
      tokens_ = tokenizer_->encode(text.text, text.name);
    } else if (characters_) {
      for (const char32_t c : from_utf8(text.text, text.name)) tokens_.push_back(characters_->of(c, text.name));
    } else {
      for (const char c : text.text) tokens_.push_back(static_cast<unsigned char>(c));
    }
    const std::size_t around = tokenizer_ ? tokenizer_->prefix().size() + tokenizer_->suffix().size() : 0;
    if (tokens_.size() + around == 0) throw Error(ExitCode::data, text.name + ": the text is empty");
    longest = std::max(longest, tokens_.size() + around);
    if (tokens_.size() + around > context_) {
      ++cut;
      tokens_.resize(context_ - std::min(around, context_));
    }
    if (tokenizer_) {
      tokens_.insert(tokens_.begin(), tokenizer_->prefix().begin(), tokenizer_->prefix().end());
      tokens_.insert(tokens_.end(), tokenizer_->suffix().begin(), tokenizer_->suffix().end());
      tokens_.resize(std::min(tokens_.size(), context_));
    }
    return tokens_;
  }

 private:
  std::unique_ptr<const TextTokenizer> tokenizer_;
  std::unique_ptr<CharacterNumbers> characters_;
  std::size_t context_;
  std::vector<std::int32_t> tokens_;
};

/// Classes that are values have one name for all their spellings, of another set the training set's.
void spell_classes(const DataSetInfo* like, std::vector<LabelledText>& texts) {
  Spellings spellings;
  for (const auto& name : like == nullptr ? std::vector<std::string>() : like->class_names) spellings.add(name);
  for (const auto& text : texts) {
    if (like == nullptr && text.is_value) spellings.add(text.class_name);
  }
  for (auto& text : texts) {
    if (text.is_value) text.class_name = spellings.name_of(text.class_name);
  }
}

/// Distinct ones in order; numbers by their size.
std::vector<std::string> class_names_of(const std::vector<LabelledText>& texts) {
  std::set<std::string> distinct;
  for (const auto& text : texts) {
    if (!text.class_name.empty()) distinct.insert(text.class_name);
  }
  std::vector<std::string> names(distinct.begin(), distinct.end());
  const auto is_number = [](const std::string& name) {
    return name.find_first_not_of("0123456789") == std::string::npos;
  };
  if (std::all_of(names.begin(), names.end(), is_number)) {
    std::stable_sort(names.begin(), names.end(),
                     [](const std::string& a, const std::string& b) { return a.size() < b.size(); });
  }
  return names;
}

std::vector<std::string> characters_of(const std::vector<LabelledText>& texts, const std::string& source) {
  std::vector<std::u32string> parts;
  for (const auto& text : texts) {
    try {
      parts.push_back(from_utf8(text.text, text.name));
    } catch (const Error&) {  // a bad sample, which is found again when it is encoded
    }
  }
  return distinct_characters(parts, source);
}

/// `context`: the training set's.
std::vector<Feature> text_features(std::int64_t context, const SourceOptions& source) {
  std::vector<Feature> features = {{"tokens", Feature::Kind::tokens, {DType::i32, {context}}},
                                   {std::string(kLength), Feature::Kind::tensor, {DType::i32, {}}}};
  if (!source.label_column.empty()) features.push_back({"label", Feature::Kind::label, {DType::i32, {}}});
  return features;
}

DataSetInfo info_of(const SourceOptions& source, const std::vector<LabelledText>& texts, const IndexOptions& options) {
  const DataSetInfo* const like = options.like;
  if (like != nullptr && (like->features.size() < 2 || like->features[1].name != kLength)) {
    throw Error(ExitCode::data, fmt::format("{}: expected a training set of texts, too, found one of {}",
                                            describe(source.paths), like->format));
  }
  if (!source.tokenizer_file.empty() && !is_predicted(source)) {
    require_tokenizer_like(like, read_tokenizer_text(source.tokenizer_file), describe(source.paths));
  }
  DataSetInfo info = like != nullptr ? *like : foresee_texts(source);
  if (like == nullptr && !source.tokenizer_file.empty()) {
    info.tokenizer = read_tokenizer_text(source.tokenizer_file);
    info.vocabulary = parse_tokenizer(info.tokenizer, source.tokenizer_file)->vocabulary();
  } else if (like == nullptr && !splits_bytes(source)) {
    info.token_text = characters_of(texts, describe(source.paths));
    info.vocabulary = std::ssize(info.token_text);
  }
  info.source = describe(source.paths);
  if (like == nullptr) {
    info.format = !info.tokenizer.empty()   ? "texts, byte pairs"
                  : info.token_text.empty() ? "texts, bytes"
                                            : "texts, characters";
    info.class_names = classes_in_order(class_names_of(texts), source, options);
  }
  info.class_counts.assign(info.class_names.size(), 0);
  info.features = text_features(info.features[0].spec.shape[0], source);
  return info;
}

}  // namespace

DataSetInfo foresee_texts(const SourceOptions& source) {
  DataSetInfo info;
  if (splits_bytes(source)) info.vocabulary = kByteTokens;
  if (!source.label_column.empty()) info.class_names = source.classes;
  info.features = text_features(source.context, source);
  return info;
}

std::unique_ptr<DataSet> open_texts(const SourceOptions& source, const IndexOptions& options) {
  const auto counter = make_byte_counter();
  TextFiles files(source, counter);
  std::vector<LabelledText>& texts = files.texts;
  spell_classes(options.like, texts);
  DataSetInfo info = info_of(source, texts, options);
  const std::size_t context = info.features[0].spec.shape[0];
  TextTokens tokens(info, context);
  std::vector<std::string> faults;
  auto set = std::make_unique<Texts>(info, counter);
  for (const LabelledText& text : texts) {
    try {
      if (!text.fault.empty()) throw Error(ExitCode::data, fmt::format("{}: {}", text.name, text.fault));
      const std::int32_t label =
          source.label_column.empty() ? -1 : class_of(info.class_names, text.class_name, text.name);
      set->add(text.name, tokens.of(text), label);
    } catch (const Error& error) {
      if (error.code() != ExitCode::data) throw;
      faults.emplace_back(error.what());
    }
  }
  judge_bad_samples(source, faults, texts.size());
  if (set->size() == 0) throw Error(ExitCode::data, fmt::format("{}: expected texts, found none", info.source));
  std::vector<std::string> warnings = std::move(files.warnings);
  for (auto& warning : unused_token_settings(source, is_predicted(source) ? nullptr : options.like)) {
    warnings.push_back(std::move(warning));
  }
  if (tokens.cut > 0) {
    warnings.push_back(fmt::format(
        "{} of {} texts are longer than the context of {} tokens, the longest has {}: their ends are cut off",
        tokens.cut, texts.size(), context, tokens.longest));
  }
  set->finish(std::move(faults), std::move(warnings));
  return set;
}

}  // namespace lockstep::data
