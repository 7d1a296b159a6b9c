#include "data/tokenizer/token_models.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "data/readers/utf8.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

std::int32_t TokenModel::required(std::int32_t unknown, std::string_view word) {
  if (unknown >= 0) return unknown;
  throw Error(ExitCode::data, fmt::format("the tokenizer has no token for '{}', and none for unknown text; expected "
                                          "an unk_token of its vocabulary",
                                          word.substr(0, 60)));
}

namespace {

class BytePairModel : public TokenModel {
 public:
  explicit BytePairModel(BytePairParts parts) : parts_(std::move(parts)) {}

  void append(std::string_view word, std::vector<std::int32_t>& tokens) const override {
    if (parts_.whole_words) {
      const std::int32_t whole = parts_.numbers.find(word);
      if (whole >= 0) return tokens.push_back(whole);
    }
    std::vector<std::int32_t> symbols;
    if (parts_.byte_level) {
      for (const char c : word) symbols.push_back(parts_.byte_tokens[static_cast<unsigned char>(c)]);
    } else {
      add_characters(word, symbols);
    }
    parts_.pairs.merge(symbols);
    tokens.insert(tokens.end(), symbols.begin(), symbols.end());
  }

 private:
  // An unknown character is noted when a known one follows, even behind bytes between them, as in the library.
  void add_characters(std::string_view word, std::vector<std::int32_t>& symbols) const {
    bool pending = false;
    for (std::size_t at = 0, end = 0; at < word.size(); at = end) {
      end = at + utf8_length(word[at]);
      std::string marked;
      std::string_view character = word.substr(at, end - at);
      if ((at > 0 && !parts_.prefix.empty()) || (end == word.size() && !parts_.suffix.empty())) {
        if (at > 0) marked += parts_.prefix;
        marked += character;
        if (end == word.size()) marked += parts_.suffix;
        character = marked;
      }
      const std::int32_t known = parts_.numbers.find(character);
      if (known >= 0) {
        if (pending) symbols.push_back(parts_.unknown);
        pending = false;
        symbols.push_back(known);
      } else if (!(parts_.falls_back && add_bytes(character, symbols)) && parts_.has_unknown) {
        if (pending && !parts_.fuses_unknown) symbols.push_back(parts_.unknown);
        (void)required(parts_.unknown, character);
        pending = true;
      }
    }
    if (pending) symbols.push_back(parts_.unknown);
  }

  bool add_bytes(std::string_view character, std::vector<std::int32_t>& symbols) const {
    for (const char c : character) {
      if (parts_.byte_tokens[static_cast<unsigned char>(c)] < 0) return false;
    }
    for (const char c : character) symbols.push_back(parts_.byte_tokens[static_cast<unsigned char>(c)]);
    return true;
  }

  const BytePairParts parts_;
};

class WordPieceModel : public TokenModel {
 public:
  explicit WordPieceModel(WordPieceParts parts) : parts_(std::move(parts)) {}

  void append(std::string_view word, std::vector<std::int32_t>& tokens) const override {
    const std::size_t before = tokens.size();
    const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
    const auto characters = word.size() - std::count_if(word.begin(), word.end(), continues);
    std::size_t at = characters > parts_.longest ? std::string_view::npos : 0;
    std::string piece;
    while (at < word.size()) {
      piece = at > 0 ? parts_.prefix : "";
      const std::size_t prefix = piece.size();
      piece += word.substr(at);
      std::int32_t found = -1;
      while (piece.size() > prefix && (found = parts_.numbers.find(piece)) < 0) {
        while (continues(piece.back())) piece.pop_back();
        piece.pop_back();
      }
      if (found < 0) break;
      tokens.push_back(found);
      at += piece.size() - prefix;
    }
    if (at == word.size()) return;
    tokens.resize(before);
    tokens.push_back(required(parts_.unknown, word));
  }

 private:
  const WordPieceParts parts_;
};

class WordLevelModel : public TokenModel {
 public:
  WordLevelModel(TokenNumbers numbers, std::int32_t unknown) : numbers_(std::move(numbers)), unknown_(unknown) {}

  void append(std::string_view word, std::vector<std::int32_t>& tokens) const override {
    const std::int32_t known = numbers_.find(word);
    tokens.push_back(known >= 0 ? known : required(unknown_, word));
  }

 private:
  const TokenNumbers numbers_;
  const std::int32_t unknown_;
};

class UnigramModel : public TokenModel {
 public:
  explicit UnigramModel(UnigramParts parts) : parts_(std::move(parts)) {
    for (std::size_t i = 0; i < parts_.tokens.size(); ++i) {
      const auto& [text, score] = parts_.tokens[i];
      lowest_ = std::min(lowest_, score);
      numbers_.set(text, i);
    }
    sorted_.reserve(numbers_.size());
    numbers_.for_each([this](std::string_view text, std::int32_t number) { sorted_.push_back({text, number}); });
    std::sort(sorted_.begin(), sorted_.end(), [](const Token& a, const Token& b) { return a.text < b.text; });
  }

  void append(std::string_view word, std::vector<std::int32_t>& tokens) const override {
    const std::vector<Node> best = best_ends(word);
    // From the end, what is unknown is taken together.
    std::vector<TextPlace> pieces;
    bool unknown_before = false;
    for (std::size_t end = word.size(); end > 0; end = best[end].begin) {
      const Node& node = best[end];
      const bool unknown = node.token == parts_.unknown;
      if (unknown && unknown_before) {
        pieces.back().begin = node.begin;
      } else {
        pieces.push_back({node.begin, end});
      }
      unknown_before = unknown;
    }
    for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
      append_piece(word.substr(piece->begin, piece->end - piece->begin), tokens);
    }
  }

 private:
  static constexpr double kUnknownPenalty = 10;
  struct Token {
    std::string_view text;
    std::int32_t number;
  };
  /// The best way to a place.
  struct Node {
    double score = 0;
    std::size_t begin = std::string_view::npos;  ///< of the last token; npos: none leads here
    std::int32_t token = -1;
  };
  struct TextPlace {
    std::size_t begin, end;
  };

  std::vector<Node> best_ends(std::string_view word) const {
    std::vector<Node> best(word.size() + 1);
    const auto offer = [&](std::size_t begin, std::size_t end, std::int32_t token, double score) {
      Node& node = best[end];
      score += best[begin].score;
      if (node.begin == std::string_view::npos || score > node.score) node = {score, begin, token};
    };
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t next = at + utf8_length(word[at]);
      bool single = false;
      for_each_prefix(word.substr(at), [&](const Token& token) {
        const std::size_t end = at + token.text.size();
        offer(at, end, token.number, parts_.tokens[token.number].second);
        single = single || end == next;
      });
      if (!single) offer(at, next, required(parts_.unknown, word), lowest_ - kUnknownPenalty);
      at = next;
    }
    return best;
  }

  /// Calls `take` with all tokens that `text` begins with, the shorter ones first.
  template <class Take>
  void for_each_prefix(std::string_view text, const Take& take) const {
    auto first = sorted_.begin(), last = sorted_.end();
    for (std::size_t length = 1; length <= text.size(); ++length) {
      const auto byte = static_cast<unsigned char>(text[length - 1]);
      const auto at = [length](const Token& token) { return static_cast<unsigned char>(token.text[length - 1]); };
      while (first != last && first->text.size() < length) ++first;
      first = std::partition_point(first, last, [&](const Token& token) { return at(token) < byte; });
      last = std::partition_point(first, last, [&](const Token& token) { return at(token) == byte; });
      if (first == last) return;
      if (first->text.size() == length) take(*first);
    }
  }

  void append_piece(std::string_view piece, std::vector<std::int32_t>& tokens) const {
    const std::int32_t known = numbers_.find(piece);
    if (known >= 0) return tokens.push_back(known);
    if (!parts_.falls_back || !append_bytes(piece, tokens)) tokens.push_back(required(parts_.unknown, piece));
  }

  bool append_bytes(std::string_view piece, std::vector<std::int32_t>& tokens) const {
    const std::size_t before = tokens.size();
    for (const char c : piece) {
      const std::int32_t byte = numbers_.find(fmt::format("<0x{:02X}>", static_cast<unsigned char>(c)));
      if (byte < 0) return tokens.resize(before), false;
      tokens.push_back(byte);
    }
    return true;
  }

  const UnigramParts parts_;
  TokenNumbers numbers_;
  std::vector<Token> sorted_;  ///< by bytes
  double lowest_ = std::numeric_limits<double>::infinity();
};

}  // namespace

std::unique_ptr<TokenModel> make_byte_pair_model(BytePairParts parts) {
  return std::make_unique<BytePairModel>(std::move(parts));
}

std::unique_ptr<TokenModel> make_word_piece_model(WordPieceParts parts) {
  return std::make_unique<WordPieceModel>(std::move(parts));
}

std::unique_ptr<TokenModel> make_word_level_model(TokenNumbers numbers, std::int32_t unknown) {
  return std::make_unique<WordLevelModel>(std::move(numbers), unknown);
}

std::unique_ptr<TokenModel> make_unigram_model(UnigramParts parts) {
  return std::make_unique<UnigramModel>(std::move(parts));
}

}  // namespace lockstep::data
