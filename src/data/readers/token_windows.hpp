// Windows over a long sequence of tokens. Features: tokens i32 [context] and target i32 [context], the next token of
// each.
//
// Or, `masked`: tokens of which some are hidden, and as target the hidden ones, kNotMasked elsewhere. Each token is
// chosen with that probability, in any case one of a window; of those chosen, 80 % become the mask, a token of the
// tokenizer's or one more at the end of the vocabulary, 10 % a random token, and 10 % stay (Devlin and others, "BERT",
// 2019). With `masked_span` L they are chosen in spans, which end after each token with probability 1 / L, and a whole
// span becomes masks, random tokens, or stays (Joshi and others, "SpanBERT", 2020). The draws depend on the window and
// the variant.
//
// n tokens have n - 1 pairs (token, next token). Window i of variant 0 has the pairs from i * context on; (n - 1) mod
// context pairs at the end are unused. Another variant starts at an offset below the context that depends on the
// variant, and treats the pairs as a ring: the last window joins the end to the beginning. So the number of windows is
// the same in every epoch, and no pair is seen twice in one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "data/sample_identities.hpp"
#include "data/tokenizer/tokenizer.hpp"
#include "lockstep/data_set.hpp"
#include "lockstep/job.hpp"

namespace lockstep::data {

class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual std::int64_t size() const = 0;
  /// Tokens first ... first + out.size() - 1. Thread-safe.
  virtual void read(std::int64_t first, std::span<std::int32_t> out) const = 0;
  virtual std::uint64_t bytes_read() const = 0;
};

class TokenWindows : public DataSet, public KnowsIdentities {
 public:
  struct Options {
    std::int64_t context = 0;
    MaskedTokens masked;
  };
  /// Of the training set's (`like`), if there is one. Throws Error(data) if that has no such windows.
  [[nodiscard]] static Options options_of(const SourceOptions& source, const DataSetInfo* like = nullptr);
  /// With the tokenizer's own mask, unless the source names one, or the model was trained with one more token.
  [[nodiscard]] static Options options_of(const SourceOptions& source, const TextTokenizer& tokenizer,
                                          const DataSetInfo* like);
  /// Says what a window is, and adds the mask to a vocabulary that is known (not 0).
  static void describe(const Options& options, DataSetInfo& info);
  static constexpr std::int32_t kNotMasked = -100;

  /// Over tokens begin ... end - 1; `info.vocabulary` without the mask. Throws Error(data) if they do not fill one
  /// window, Error(configuration) for masks in a vocabulary of unknown size.
  TokenWindows(std::shared_ptr<const TokenSource> source, DataSetInfo info, Options options, std::int64_t begin,
               std::int64_t end);

  const DataSetInfo& info() const override { return info_; }
  std::int64_t size() const override { return (tokens() - 1) / options_.context; }
  std::uint64_t bytes_read() const override { return source_->bytes_read(); }
  void read(std::int64_t id, Sample& out) const override { read_variant(id, 0, out); }
  void read_variant(std::int64_t id, std::uint64_t variant, Sample& out) const override;
  /// Of a set that is small enough to be read for them: fingerprints of its tokens.
  void add_identities(std::int64_t id, std::vector<std::uint64_t>& out) const override;

  std::int64_t tokens() const { return end_ - begin_; }
  /// Reads tokens first ... first + out.size() - 1 of these.
  void read_tokens(std::int64_t first, std::span<std::int32_t> out) const { source_->read(begin_ + first, out); }
  /// The same over a part of the tokens, which its digest identifies.
  std::unique_ptr<DataSet> part(std::int64_t first, std::int64_t last) const;

 private:
  void hide(std::int64_t id, std::uint64_t variant, std::span<std::int32_t> tokens,
            std::span<std::int32_t> target) const;

  std::shared_ptr<const TokenSource> source_;
  DataSetInfo info_;
  Options options_;
  std::int64_t begin_, end_;
};

}  // namespace lockstep::data
