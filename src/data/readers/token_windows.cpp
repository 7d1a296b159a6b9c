#include "data/readers/token_windows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/digest.hpp"
#include "data/readers/common.hpp"
#include "data/readers/prepare.hpp"
#include "lockstep/error.hpp"
#include "lockstep/random.hpp"

namespace lockstep::data {

namespace {

// Fingerprints of a sequence of tokens by winnowing: sequences that have a long run of tokens in common have a
// fingerprint in common, wherever the run lies (Schleimer, Wilkerson, Aiken, "Winnowing", 2003).

/// Tokens of which a fingerprint is a hash: enough that no two texts have them in common by chance.
constexpr std::int64_t kFingerprintTokens = 32;

struct TokenFingerprint {
  std::int64_t first = 0;  ///< position of the first of its tokens
  std::uint64_t hash = 0;
};

/// Of each `window` successive hashes the smallest one, each once: a run of kFingerprintTokens + window - 1 tokens has
/// at least one. None of a shorter sequence.
std::vector<TokenFingerprint> token_fingerprints(std::span<const std::int32_t> tokens, std::int64_t window) {
  constexpr std::uint64_t kBase = 0x9E3779B97F4A7C15;  // odd, so that no token's part of the sum is lost
  std::uint64_t oldest = 1;                            // the factor of a run's first token
  for (std::int64_t i = 1; i < kFingerprintTokens; ++i) oldest *= kBase;
  const auto word = [&](std::int64_t at) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(tokens[at])) + 1;
  };
  std::vector<TokenFingerprint> found;
  std::deque<TokenFingerprint> least;  // ascending: the first is the smallest of the window
  std::uint64_t sum = 0;
  for (std::int64_t last = 0; last < std::ssize(tokens); ++last) {
    if (last >= kFingerprintTokens) sum -= oldest * word(last - kFingerprintTokens);
    sum = sum * kBase + word(last);
    const TokenFingerprint own{last - kFingerprintTokens + 1, mix(sum, 0)};
    if (own.first < 0) continue;
    while (!least.empty() && least.back().hash >= own.hash) least.pop_back();
    least.push_back(own);
    if (least.front().first <= own.first - window) least.pop_front();
    const bool is_new = found.empty() || found.back().first != least.front().first;
    if (own.first >= window - 1 && is_new) found.push_back(least.front());
  }
  return found;
}

}  // namespace

TokenWindows::TokenWindows(std::shared_ptr<const TokenSource> source, DataSetInfo info, Options options,
                           std::int64_t begin, std::int64_t end)
    : source_(std::move(source)), info_(std::move(info)), options_(options), begin_(begin), end_(end) {
  const std::int64_t context = options_.context;
  if (context < 1) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: a context of {} tokens; expected 1 or more", info_.source, context));
  }
  if (tokens() < context + 1) {
    throw Error(ExitCode::data, fmt::format("{}: {} tokens; one window of context {} takes {}", info_.source, tokens(),
                                            context, context + 1));
  }
  if (options_.masked.share > 0 && info_.vocabulary < 1) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: masked: expected tokens of which all were seen when the set was indexed, found a set "
                            "that is too large for that; leave masked out, or take a smaller set",
                            info_.source));
  }
  if (options_.masked.share > 0 && options_.masked.token >= info_.vocabulary) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: mask_token: expected one of the {} tokens of the vocabulary, found {}", info_.source,
                            info_.vocabulary, options_.masked.token));
  }
  describe(options_, info_);
}

TokenWindows::Options TokenWindows::options_of(const SourceOptions& source, const DataSetInfo* like) {
  const std::int64_t token = source.attributes.has("mask_token") ? source.attributes.integer("mask_token") : -1;
  Options options{source.context, {source.masked, source.masked_span, token}};
  if (like == nullptr) return options;
  const auto& features = like->features;
  if (features.size() != 2 || features[0].name != "tokens" || features[1].name != "target") {
    throw Error(ExitCode::data, fmt::format("{}: expected a training set of windows of tokens, too, found one of {}",
                                            data::describe(source.paths), like->format));
  }
  options.context = features[0].spec.shape[0];
  if (like->masked.share > 0) options.masked.token = like->masked.token;
  return options;
}

TokenWindows::Options TokenWindows::options_of(const SourceOptions& source, const TextTokenizer& tokenizer,
                                               const DataSetInfo* like) {
  Options options = options_of(source, like);
  const bool was_added = like != nullptr && like->vocabulary > tokenizer.vocabulary();
  if (options.masked.token >= 0 || was_added) return options;
  for (const char* const text : {"[MASK]", "<mask>"}) {
    if (const auto token = tokenizer.added_token(text)) options.masked.token = *token;
  }
  return options;
}

void TokenWindows::describe(const Options& options, DataSetInfo& info) {
  const TensorSpec spec{DType::i32, {options.context}};
  info.features = {{"tokens", Feature::Kind::tokens, spec}, {"target", Feature::Kind::tokens, spec}};
  if (options.masked.share > 0) info.masked = options.masked;
  if (options.masked.adds_token() && info.vocabulary > 0) ++info.vocabulary;
}

void TokenWindows::read_variant(std::int64_t id, std::uint64_t variant, Sample& out) const {
  LOCKSTEP_CHECK(id >= 0 && id < size(), "the number of a window");
  static constexpr std::uint64_t kStream = hash_name("window offset");
  const std::int64_t context = options_.context;
  const std::uint64_t length = context;
  const auto offset = variant == 0 ? 0 : static_cast<std::int64_t>(mix(variant, kStream) % length);

  prepare_names(out, info_.features);
  for (std::size_t i = 0; i < 2; ++i) prepare(out[i].tensor, info_.features[i].spec);
  auto tokens_out = out[0].tensor.as<std::int32_t>(), target_out = out[1].tensor.as<std::int32_t>();
  std::vector<std::int32_t> run;
  const std::int64_t pairs = tokens() - 1;
  for (std::int64_t done = 0; done < context;) {
    const std::int64_t position = (offset + id * context + done) % pairs;
    const std::int64_t count = std::min(context - done, pairs - position);
    run.resize(count + 1);
    source_->read(begin_ + position, run);
    std::copy(run.begin(), run.end() - 1, tokens_out.begin() + done);
    std::copy(run.begin() + 1, run.end(), target_out.begin() + done);
    done += count;
  }
  if (options_.masked.share > 0) hide(id, variant, tokens_out, target_out);
}

void TokenWindows::hide(std::int64_t id, std::uint64_t variant, std::span<std::int32_t> tokens,
                        std::span<std::int32_t> target) const {
  static constexpr std::uint64_t kStream = hash_name("masked tokens");
  RandomStream random(mix(variant, kStream), id);
  const MaskedTokens& masked = options_.masked;
  const bool last = masked.adds_token();
  const std::int32_t mask = last ? info_.vocabulary - 1 : masked.token;
  const std::uint32_t others = last ? info_.vocabulary - 1 : info_.vocabulary;
  const std::size_t always = random.below(tokens.size());
  // A chain whose share of chosen tokens is `masked`: after a chosen one the span goes on, or another begins.
  const double goes_on = 1 - 1 / masked.span;
  const double begins = masked.share * (1 - goes_on) / (1 - masked.share * goes_on);
  bool chosen = false;
  float how = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const double chance = random.unit();
    const float drawn = random.unit();
    const std::int32_t other = random.below(others);
    const bool same_span = chosen && chance < goes_on;
    const double limit = i == 0 ? masked.share : chosen ? goes_on + (1 - goes_on) * begins : begins;
    if (!same_span) how = drawn;
    chosen = i == always || chance < limit;
    target[i] = chosen ? tokens[i] : kNotMasked;
    if (chosen && how < 0.9F) tokens[i] = how < 0.8F ? mask : other;
  }
}

void TokenWindows::add_identities(std::int64_t id, std::vector<std::uint64_t>& out) const {
  constexpr std::int64_t kMostTokens = std::int64_t{1} << 25, kMostApart = 32;
  if (tokens() > kMostTokens || !info_.content_in_digest) return;
  // Their choice depends on neighbours, which may be in the windows beside this one.
  const std::int64_t context = options_.context, apart = std::min(context, kMostApart);
  const std::int64_t first = id * context, end = first + context;
  const std::int64_t from = std::max<std::int64_t>(0, first - apart + 1);
  const std::int64_t to = std::min(tokens(), end + apart - 1 + kFingerprintTokens - 1);
  std::vector<std::int32_t> read(to - from);
  read_tokens(from, read);
  for (const auto& found : token_fingerprints(read, apart)) {
    if (found.first + from >= first && found.first + from < end) out.push_back(found.hash);
  }
}

std::unique_ptr<DataSet> TokenWindows::part(std::int64_t first, std::int64_t last) const {
  DataSetInfo info = info_;
  info.digest = sha256(fmt::format("{} tokens {} to {}", info_.digest, first, last));
  if (options_.masked.adds_token()) --info.vocabulary;
  return std::make_unique<TokenWindows>(source_, std::move(info), options_, begin_ + first, begin_ + last);
}

}  // namespace lockstep::data
