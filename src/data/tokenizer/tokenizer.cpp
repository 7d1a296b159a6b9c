#include "data/tokenizer/tokenizer.hpp"

#include <algorithm>

#include "data/readers/utf8.hpp"
#include "data/tokenizer/unicode_text.hpp"
#include "data/tokenizer/white_space.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

namespace {

struct FoundToken {
  TextSpan place;
  const AddedToken* token = nullptr;  ///< null: none up to the text's end
};

bool beside_word(std::string_view text, std::size_t begin, std::size_t end) {
  return (begin > 0 && is_word_character(character_before(text, begin))) ||
         (end < text.size() && is_word_character(next_character(text, end)));
}

}  // namespace

/// Finds the leftmost of some added tokens, of several there the longest.
class TextTokenizer::AddedFinder {
 public:
  explicit AddedFinder(const std::vector<AddedToken>& tokens) {
    for (const AddedToken& token : tokens) by_first_[static_cast<unsigned char>(token.text.front())].push_back(&token);
    for (auto& some : by_first_) {
      std::stable_sort(some.begin(), some.end(),
                       [](const AddedToken* a, const AddedToken* b) { return a->text.size() > b->text.size(); });
    }
    any_ = !tokens.empty();
  }

  FoundToken find(std::string_view text, std::size_t from) const {
    for (std::size_t at = from; any_ && at < text.size();) {
      const AddedToken* const token = token_at(text, at);
      const std::size_t end = at + (token != nullptr ? token->text.size() : 1);
      if (token == nullptr || (token->single_word && beside_word(text, at, end))) {
        at = end;
        continue;
      }
      return {{token->strips_left ? white_space_before(text, from, at) : at,
               token->strips_right ? white_space_after(text, end) : end},
              token};
    }
    return {{text.size(), text.size()}, nullptr};
  }

 private:
  const AddedToken* token_at(std::string_view text, std::size_t at) const {
    for (const AddedToken* token : by_first_[static_cast<unsigned char>(text[at])]) {
      if (text.compare(at, token->text.size(), token->text) == 0) return token;
    }
    return nullptr;
  }

  std::array<std::vector<const AddedToken*>, 256> by_first_;
  bool any_ = false;
};

TextTokenizer::TextTokenizer(TokenizerParts parts)
    : parts_(std::move(parts)),
      added_(parts_.texts.size()),
      first_(std::make_unique<AddedFinder>(parts_.added)),
      later_(std::make_unique<AddedFinder>(parts_.added_later)) {
  for (const auto* some : {&parts_.added, &parts_.added_later}) {
    for (const AddedToken& token : *some) added_[token.id] = token.special ? 2 : 1;
  }
}

TextTokenizer::~TextTokenizer() = default;

std::optional<std::int32_t> TextTokenizer::added_token(std::string_view text) const {
  for (std::size_t i = 0; i < added_.size(); ++i) {
    if (added_[i] != 0 && parts_.texts[i] == text) return static_cast<std::int32_t>(i);
  }
  return std::nullopt;
}

bool TextTokenizer::can_cut(std::string_view text) const {
  if (parts_.lines) return true;
  return parts_.words != nullptr &&
         (parts_.normalizers.empty() || (parts_.only_nfc && is_normal(NormalForm::nfc, text)));
}

/// Finds words, and remembers the tokens of short ones, of which text has few that are different.
class TextTokenizer::Encoder::Words {
 public:
  explicit Words(const TextTokenizer& tokenizer) : tokenizer_(tokenizer), parts_(tokenizer.parts_) {}

  void begin(bool cuts) {
    searched_ = false;
    cuts_ = cuts;
  }

  std::size_t next(std::string_view text, std::size_t from, std::vector<std::int32_t>& out) {
    const bool words = cuts_ && !parts_.lines;
    const FoundToken added = words ? added_token(text, from) : first_added(text, from);
    if (added.token != nullptr && added.place.begin <= from) {
      out.push_back(added.token->id);
      return added.place.end;
    }
    if (words) {
      const std::size_t end = word_end(text.substr(0, added.place.begin), from);
      append_word(text.substr(from, end - from), from == 0, out);
      return end;
    }
    const std::size_t line_end = cuts_ ? text.find('\n', from) : std::string_view::npos;
    const std::size_t end =
        std::min(line_end == std::string_view::npos ? text.size() : line_end + 1, added.place.begin);
    append_segment(std::string(text.substr(from, end - from)), from == 0, out);
    return end;
  }

 private:
  static constexpr std::size_t kMostRemembered = 1 << 16, kLongestRemembered = 48;

  FoundToken first_added(std::string_view text, std::size_t from) {
    const bool known = searched_ && from >= searched_from_ && (first_.token == nullptr || from <= first_.place.begin);
    if (!known) first_ = tokenizer_.first_->find(text, from);
    searched_ = true;
    searched_from_ = from;
    return first_;
  }

  // Searched for once for all words before it.
  FoundToken added_token(std::string_view text, std::size_t from) {
    const bool known = searched_ && from >= searched_from_ && (first_.token == nullptr || from <= first_.place.begin);
    if (!known) first_ = tokenizer_.first_->find(text, from);
    const std::string_view rest = text.substr(0, first_.place.begin);
    if (!known || (later_.token != nullptr && from > later_.place.begin)) later_ = tokenizer_.later_->find(rest, from);
    searched_ = true;
    searched_from_ = from;
    return later_.token != nullptr ? later_ : first_;
  }

  std::size_t word_end(std::string_view text, std::size_t from) {
    const auto found = parts_.words->find(text, from);
    if (!found) return text.size();
    return found->begin > from ? found->begin : found->end;  // what no match covers is a word, too
  }

  // What no added token is in, as it stands in the text.
  void append_segment(std::string segment, bool at_start, std::vector<std::int32_t>& out) {
    for (const Normalizer& normalize : parts_.normalizers) normalize(segment);
    const std::string_view text = segment;
    for (std::size_t at = 0; at < text.size();) {
      const FoundToken added = tokenizer_.later_->find(text, at);
      if (added.place.begin > at) append_section(text.substr(at, added.place.begin - at), at_start && at == 0, out);
      if (added.token != nullptr) out.push_back(added.token->id);
      at = added.place.end;
    }
  }

  void append_section(std::string_view text, bool at_start, std::vector<std::int32_t>& out) {
    if (parts_.words != nullptr) {
      for (std::size_t at = 0, end = 0; at < text.size(); at = end) {
        end = word_end(text, at);
        append_word(text.substr(at, end - at), at_start && at == 0, out);
      }
    } else {
      append_split(text, at_start, [&](std::string_view word) { append_remembered(word, out); });
    }
  }

  template <class Append>
  void append_split(std::string_view text, bool at_start, const Append& append) {
    if (parts_.splits.empty()) return append(text);
    std::vector<TextPart> words = {{std::string(text), at_start}};
    for (const PreTokenizer& split : parts_.splits) split(words);
    for (const TextPart& word : words) {
      if (!word.text.empty()) append(word.text);
    }
  }

  // The first word may be split otherwise than later ones.
  void append_word(std::string_view word, bool at_start, std::vector<std::int32_t>& out) {
    if (parts_.splits.empty() || !at_start) return append_remembered(word, out);
    append_split(word, at_start, [&](std::string_view part) { parts_.model->append(part, out); });
  }

  void append_remembered(std::string_view word, std::vector<std::int32_t>& out) {
    if (word.size() > kLongestRemembered) return make(word, out);
    key_.assign(word);
    const auto known = remembered_.find(key_);
    if (known != remembered_.end()) return void(out.insert(out.end(), known->second.begin(), known->second.end()));
    std::vector<std::int32_t> made;
    make(word, made);
    out.insert(out.end(), made.begin(), made.end());
    if (remembered_.size() < kMostRemembered) remembered_.emplace(key_, std::move(made));
  }

  void make(std::string_view word, std::vector<std::int32_t>& out) {
    if (parts_.words == nullptr) return parts_.model->append(word, out);
    append_split(word, false, [&](std::string_view part) { parts_.model->append(part, out); });
  }

  const TextTokenizer& tokenizer_;
  const TokenizerParts& parts_;
  bool cuts_ = false, searched_ = false;
  std::size_t searched_from_ = 0;
  FoundToken first_, later_;
  std::unordered_map<std::string, std::vector<std::int32_t>> remembered_;
  std::string key_;
};

TextTokenizer::Encoder::Encoder(const TextTokenizer& tokenizer) : words_(std::make_unique<Words>(tokenizer)) {}

TextTokenizer::Encoder::~Encoder() = default;

void TextTokenizer::Encoder::begin(bool cuts) {
  words_->begin(cuts);
}

std::size_t TextTokenizer::Encoder::next(std::string_view text, std::size_t from, std::vector<std::int32_t>& out) {
  return words_->next(text, from, out);
}

std::vector<std::int32_t> TextTokenizer::encode(std::string_view text, const std::string& where) const {
  require_utf8(text, where);
  Encoder encoder(*this);
  encoder.begin(can_cut(text));
  std::vector<std::int32_t> tokens;
  for (std::size_t at = 0; at < text.size();) at = encoder.next(text, at, tokens);
  return tokens;
}

std::string TextTokenizer::text_of(std::int32_t token, bool first) const {
  const std::size_t index = token;
  if (token < 0 || index >= parts_.texts.size() || !parts_.known[index]) return "";
  std::string text = parts_.texts[index];
  if (parts_.joins_by_spaces) return first ? text : " " + text;
  for (const auto& change : parts_.decoders) {
    change(text, first);
  }
  return text;
}

TextTokenizer::Decoder::Decoder(const TextTokenizer& tokenizer) : tokenizer_(tokenizer) {}

std::string TextTokenizer::Decoder::next(std::int32_t token) {
  const std::size_t index = token;
  const TokenizerParts& parts = tokenizer_.parts_;
  if (token < 0 || index >= parts.texts.size() || !parts.known[index] || tokenizer_.added_[index] == 2) return "";
  std::string text = tokenizer_.text_of(token, first_);
  first_ = false;
  if (!parts.holds_space) return text;
  if (holds_space_) text.insert(0, " ");
  holds_space_ = text.ends_with(' ');
  if (holds_space_) text.pop_back();
  return text;
}

}  // namespace lockstep::data
