#include "data/tokenizer/tokenizer.hpp"

#include <algorithm>

#include "data/readers/utf8.hpp"
#include "data/tokenizer/white_space.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

struct FoundToken {
  TextSpan place;
  const AddedToken* token = nullptr;  ///< null: none up to the text's end
};

}  // namespace

/// Finds the leftmost of some added tokens, of several there the longest.
class BytePairTokenizer::AddedFinder {
 public:
  explicit AddedFinder(const std::vector<AddedToken>& tokens) {
    for (const AddedToken& token : tokens) by_first_[static_cast<unsigned char>(token.text.front())].push_back(&token);
    for (auto& some : by_first_) {
      std::stable_sort(some.begin(), some.end(),
                       [](const AddedToken* a, const AddedToken* b) { return a->text.size() > b->text.size(); });
    }
    any_ = !tokens.empty();
  }

  [[nodiscard]] FoundToken find(std::string_view text, std::size_t from) const {
    for (std::size_t at = from; any_ && at < text.size(); ++at) {
      for (const AddedToken* token : by_first_[static_cast<unsigned char>(text[at])]) {
        if (text.compare(at, token->text.size(), token->text) != 0) continue;
        const std::size_t end = at + token->text.size();
        return {{token->strips_left ? white_space_before(text, from, at) : at,
                 token->strips_right ? white_space_after(text, end) : end},
                token};
      }
    }
    return {{text.size(), text.size()}, nullptr};
  }

 private:
  std::array<std::vector<const AddedToken*>, 256> by_first_;
  bool any_ = false;
};

BytePairTokenizer::BytePairTokenizer(TokenizerParts parts)
    : parts_(std::move(parts)),
      first_(std::make_unique<AddedFinder>(parts_.added)),
      later_(std::make_unique<AddedFinder>(parts_.added_later)) {}

BytePairTokenizer::~BytePairTokenizer() = default;

std::optional<std::int32_t> BytePairTokenizer::added_token(std::string_view text) const {
  for (const auto* tokens : {&parts_.added, &parts_.added_later}) {
    for (const AddedToken& token : *tokens) {
      if (token.text == text) return token.id;
    }
  }
  return std::nullopt;
}

/// Finds words, and remembers the tokens of short ones, of which text has few that are different.
class BytePairTokenizer::Encoder::Words {
 public:
  explicit Words(const BytePairTokenizer& tokenizer) : tokenizer_(tokenizer), parts_(tokenizer.parts_) {
    if (parts_.words) matcher_.emplace(*parts_.words);
  }

  void begin() { searched_ = false; }

  std::size_t next(std::string_view text, std::size_t from, std::vector<std::int32_t>& out) {
    const FoundToken added = added_token(text, from);
    if (added.token != nullptr && added.place.begin <= from) {
      out.push_back(added.token->id);
      return added.place.end;
    }
    const std::size_t end = word_end(text.substr(0, added.place.begin), from);
    append(text.substr(from, end - from), out);
    return end;
  }

 private:
  static constexpr std::size_t kMostRemembered = 1 << 16, kLongestRemembered = 48;

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
    if (!matcher_) return text.size();
    const auto found = matcher_->find(text, from);
    if (!found) return text.size();
    return found->begin > from ? found->begin : found->end;  // what no match covers is a word, too
  }

  void append(std::string_view word, std::vector<std::int32_t>& out) {
    if (word.size() > kLongestRemembered) return make(word), void(out.insert(out.end(), made_.begin(), made_.end()));
    key_.assign(word);
    const auto known = remembered_.find(key_);
    if (known != remembered_.end()) return void(out.insert(out.end(), known->second.begin(), known->second.end()));
    make(word);
    if (remembered_.size() < kMostRemembered) remembered_.emplace(key_, made_);
    out.insert(out.end(), made_.begin(), made_.end());
  }

  void make(std::string_view word) {
    made_.clear();
    if (parts_.characters) {
      add_characters(word);
    } else {
      const auto whole = parts_.whole_words ? parts_.numbers.find(std::string(word)) : parts_.numbers.end();
      if (whole != parts_.numbers.end()) return made_.push_back(whole->second);
      for (const char c : word) made_.push_back(parts_.byte_tokens[static_cast<unsigned char>(c)]);
    }
    parts_.pairs.merge(made_);
  }

  // With a space before it, all of a text's spaces as U+2581.
  void add_characters(std::string_view word) {
    add_character(kSpaceMark);
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t length = utf8_length(word[at]);
      add_character(word[at] == ' ' ? kSpaceMark : word.substr(at, length));
      at += length;
    }
  }

  void add_character(std::string_view character) {
    const auto found = parts_.numbers.find(std::string(character));
    if (found != parts_.numbers.end()) return made_.push_back(found->second);
    for (const char c : character) made_.push_back(parts_.byte_tokens[static_cast<unsigned char>(c)]);
  }

  const BytePairTokenizer& tokenizer_;
  const TokenizerParts& parts_;
  std::optional<SplitPattern::Matcher> matcher_;
  bool searched_ = false;
  std::size_t searched_from_ = 0;
  FoundToken first_, later_;
  std::unordered_map<std::string, std::vector<std::int32_t>> remembered_;
  std::string key_;
  std::vector<std::int32_t> made_;
};

BytePairTokenizer::Encoder::Encoder(const BytePairTokenizer& tokenizer) : words_(std::make_unique<Words>(tokenizer)) {}

BytePairTokenizer::Encoder::~Encoder() = default;

void BytePairTokenizer::Encoder::begin() {
  words_->begin();
}

std::size_t BytePairTokenizer::Encoder::next(std::string_view text, std::size_t from, std::vector<std::int32_t>& out) {
  return words_->next(text, from, out);
}

std::vector<std::int32_t> BytePairTokenizer::encode(std::string_view text, const std::string& where) const {
  require_utf8(text, where);
  Encoder encoder(*this);
  std::vector<std::int32_t> tokens;
  for (std::size_t at = 0; at < text.size();) at = encoder.next(text, at, tokens);
  return tokens;
}

std::string BytePairTokenizer::piece(std::int32_t token) const {
  const auto index = static_cast<std::size_t>(token);
  return token >= 0 && index < parts_.pieces.size() ? parts_.pieces[index] : "";
}

BytePairTokenizer::Decoder::Decoder(const BytePairTokenizer& tokenizer)
    : tokenizer_(tokenizer),
      special_(static_cast<std::size_t>(tokenizer.vocabulary())),
      strips_space_(tokenizer.parts_.characters) {
  for (const auto* some : {&tokenizer.parts_.added, &tokenizer.parts_.added_later}) {
    for (const AddedToken& token : *some) special_[static_cast<std::size_t>(token.id)] = token.special;
  }
}

std::string BytePairTokenizer::Decoder::next(std::int32_t token) {
  if (token >= 0 && token < tokenizer_.vocabulary() && special_[static_cast<std::size_t>(token)]) return "";
  std::string piece = tokenizer_.piece(token);
  if (strips_space_ && piece.starts_with(' ')) piece.erase(0, 1);
  strips_space_ = false;
  return piece;
}

}  // namespace lockstep::data
