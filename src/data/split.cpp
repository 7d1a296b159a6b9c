#include "data/split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <sstream>
#include <vector>

#include "core/digest.hpp"
#include "data/readers/file.hpp"
#include "data/readers/row_windows.hpp"
#include "data/readers/token_windows.hpp"
#include "data/sample_identities.hpp"
#include "lockstep/error.hpp"
#include "lockstep/random.hpp"

namespace lockstep::data {
namespace {

class View final : public DataSet, public KnowsIdentities {
 public:
  /// All of it, with a warning.
  View(std::shared_ptr<const DataSet> whole, std::string warning)
      : whole_(std::move(whole)), ids_(whole_->size()), info_(whole_->info()) {
    std::iota(ids_.begin(), ids_.end(), std::int64_t{0});
    info_.warnings.push_back(std::move(warning));
  }

  View(std::shared_ptr<const DataSet> whole, std::vector<std::int64_t> ids)
      : whole_(std::move(whole)), ids_(std::move(ids)), info_(whole_->info()) {
    info_.class_counts.assign(info_.class_names.size(), 0);
    for (const auto id : ids_) {
      const auto label = whole_->label(id);
      if (label >= 0 && label < static_cast<std::int64_t>(info_.class_counts.size())) {
        ++info_.class_counts[label];
      }
    }
    Sha256 digest;
    digest.add(info_.digest);
    digest.add(std::as_bytes(std::span(ids_)));
    info_.digest = digest.hex();
  }

  const DataSetInfo& info() const override { return info_; }
  std::int64_t size() const override { return ids_.size(); }
  void read(std::int64_t id, Sample& out) const override { whole_->read(at(id), out); }
  void read_without_images(std::int64_t id, Sample& out) const override { whole_->read_without_images(at(id), out); }
  void read_variant(std::int64_t id, std::uint64_t variant, Sample& out) const override {
    whole_->read_variant(at(id), variant, out);
  }
  bool read_encoded(std::int64_t id, std::vector<EncodedFeature>& out) const override {
    return whole_->read_encoded(at(id), out);
  }
  std::string name(std::int64_t id) const override { return whole_->name(at(id)); }
  std::int64_t label(std::int64_t id) const override { return whole_->label(at(id)); }
  void add_identities(std::int64_t id, std::vector<std::uint64_t>& out) const override {
    data::add_identities(*whole_, at(id), out);
  }
  std::uint64_t bytes_read() const override { return whole_->bytes_read(); }

 private:
  std::int64_t at(std::int64_t id) const { return ids_.at(id); }
  std::shared_ptr<const DataSet> whole_;
  std::vector<std::int64_t> ids_;
  DataSetInfo info_;
};

/// By id: whether it is a validation sample.
using Choice = std::vector<bool>;

/// Samples in a random order: the words that a stream has for them, and their ids. A list for each class, or one list.
using Drawn = std::vector<std::vector<std::pair<std::uint64_t, std::int64_t>>>;

Drawn draw(const DataSet& whole, bool stratify, std::uint64_t key) {
  Drawn drawn(stratify ? whole.info().class_names.size() : 1);
  for (std::int64_t id = 0; id < whole.size(); ++id) {
    const std::uint32_t low = id, high = id >> 32;
    const auto words = philox(key, {low, high, 0, 0});
    drawn.at(stratify ? static_cast<std::size_t>(whole.label(id)) : 0)
        .emplace_back(std::uint64_t{words[0]} << 32 | words[1], id);
  }
  for (auto& list : drawn) std::sort(list.begin(), list.end());
  return drawn;
}

/// How many samples of each list are `fraction` of it: round(fraction * all) together.
std::vector<std::size_t> shares_of(const Drawn& drawn, std::int64_t size, double fraction) {
  std::vector<std::size_t> shares;
  std::vector<std::pair<double, std::size_t>> remainders;  // negative, so that the largest come first
  auto left = std::llround(fraction * size);
  for (std::size_t c = 0; c < drawn.size(); ++c) {
    const double exact = fraction * drawn[c].size();
    shares.push_back(exact);
    remainders.emplace_back(shares.back() - exact, c);
    left -= static_cast<std::int64_t>(shares.back());
  }
  std::sort(remainders.begin(), remainders.end());
  for (std::size_t i = 0; left > 0 && i < remainders.size(); ++i) {
    std::size_t& share = shares[remainders[i].second];
    if (share == drawn[remainders[i].second].size()) continue;
    ++share;
    --left;
  }
  return shares;
}

Choice choose_fraction(const DataSet& whole, double fraction, bool stratify, std::uint64_t seed) {
  static constexpr std::uint64_t kStream = hash_name("validation split");
  const Drawn drawn = draw(whole, stratify, mix(seed, kStream));
  const auto shares = shares_of(drawn, whole.size(), fraction);
  Choice chosen(whole.size(), false);
  for (std::size_t c = 0; c < drawn.size(); ++c) {
    for (std::size_t i = 0; i < shares[c]; ++i) chosen[drawn[c][i].second] = true;
  }
  return chosen;
}

Choice choose_fold(const DataSet& whole, const Fold& fold, bool stratify, std::uint64_t seed) {
  static constexpr std::uint64_t kStream = hash_name("validation folds");
  Choice chosen(whole.size(), false);
  std::int64_t dealt = 0;
  for (const auto& list : draw(whole, stratify, mix(seed, kStream))) {
    for (const auto& [word, id] : list) chosen[id] = dealt++ % fold.of == fold.number - 1;
  }
  return chosen;
}

bool stratifies(const DataSet& whole, const SplitOptions& options) {
  bool classes = !whole.info().class_names.empty();
  for (std::int64_t id = 0; classes && id < whole.size(); ++id) {
    const std::int64_t label = whole.label(id);
    classes = label >= 0 && label < std::ssize(whole.info().class_names);
  }
  if (options.stratify.value_or(false) && !classes) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: expected samples of one class each to stratify, found {}; leave stratify out",
                            whole.info().source, whole.info().format));
  }
  return classes && options.stratify.value_or(options.fold.of > 0);
}

Choice choose(const DataSet& whole, const SplitOptions& options) {
  const bool stratify = stratifies(whole, options);
  return options.fold.of > 0 ? choose_fold(whole, options.fold, stratify, options.seed)
                             : choose_fraction(whole, options.fraction, stratify, options.seed);
}

std::optional<std::int64_t> as_id(const std::string& word, std::int64_t size) {
  const std::string digits = word.starts_with('#') ? word.substr(1) : word;
  if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos) return {};
  const std::int64_t id = std::stoll(digits);
  return id < size ? std::optional(id) : std::nullopt;
}

Choice choose_listed(const DataSet& whole, const std::string& path) {
  const auto bytes = read_whole(File(path, make_byte_counter()));
  std::istringstream lines(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  std::map<std::string, std::int64_t> ids;
  for (std::int64_t id = 0; id < whole.size(); ++id) ids.emplace(whole.name(id), id);
  Choice chosen(whole.size(), false);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    const auto named = ids.find(line);
    const auto id = named != ids.end() ? std::optional(named->second) : as_id(line, whole.size());
    if (!id) {
      throw Error(ExitCode::data, fmt::format("{}:{}: '{}' is no sample of {}; expected a name such as '{}', or a "
                                              "number below {}",
                                              path, number, line, whole.info().source, whole.name(0), whole.size()));
    }
    chosen[*id] = true;
  }
  return chosen;
}

Split cut_tokens(const TokenWindows& whole, const SplitOptions& options) {
  if (options.fold.of > 0 || options.stratify.value_or(false)) {
    throw Error(
        ExitCode::configuration,
        fmt::format("{}: text is split by a fraction of its length; it has no classes, and is not cut into folds",
                    whole.info().source));
  }
  if (!options.list.empty()) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: text is split by a fraction; its windows have no names to list", options.list));
  }
  const auto held_out = std::llround(options.fraction * whole.tokens());
  const std::int64_t border = whole.tokens() - held_out;
  return {whole.part(0, border), whole.part(border, whole.tokens())};
}

}  // namespace

std::unique_ptr<DataSet> make_view(std::shared_ptr<const DataSet> whole, std::vector<std::int64_t> ids) {
  return std::make_unique<View>(std::move(whole), std::move(ids));
}

std::unique_ptr<DataSet> limit(std::unique_ptr<DataSet> whole, std::int64_t count) {
  const std::int64_t size = whole->size();
  if (count <= 0 || count == size) return whole;
  if (count > size) {
    return std::make_unique<View>(std::move(whole),
                                  fmt::format("count: expected at most the {} samples that there are, found {}: all of "
                                              "them are taken",
                                              size, count));
  }
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back(i * size / count);
  return make_view(std::move(whole), std::move(ids));
}

std::unique_ptr<DataSet> bootstrap(std::shared_ptr<const DataSet> whole, std::uint64_t seed) {
  static constexpr std::uint64_t kStream = hash_name("bootstrap");
  const std::uint64_t size = whole->size();
  std::vector<std::int64_t> ids;
  for (std::uint64_t i = 0; i < size; ++i) {
    const auto words =
        philox(mix(seed, kStream), {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32), 0, 0});
    ids.push_back((std::uint64_t{words[0]} << 32 | words[1]) % size);
  }
  std::sort(ids.begin(), ids.end());
  return make_view(std::move(whole), std::move(ids));
}

Split split(const std::shared_ptr<const DataSet>& whole, const SplitOptions& options) {
  if (options.list.empty() && options.fold.of == 0 && !(options.fraction > 0 && options.fraction < 1)) {
    throw Error(ExitCode::configuration,
                fmt::format("a validation fraction of {}; expected more than 0 and less than 1", options.fraction));
  }
  if (const auto* tokens = dynamic_cast<const TokenWindows*>(whole.get())) return cut_tokens(*tokens, options);
  if (const auto* windows = dynamic_cast<const RowWindows*>(whole.get())) return windows->cut(options);

  const Choice chosen = options.list.empty() ? choose(*whole, options) : choose_listed(*whole, options.list);
  std::vector<std::int64_t> train, validation;
  for (std::int64_t id = 0; id < whole->size(); ++id) {
    (chosen[id] ? validation : train).push_back(id);
  }
  if (train.empty() || validation.empty()) {
    throw Error(
        options.list.empty() ? ExitCode::configuration : ExitCode::data,
        fmt::format("{}: {} samples for training and {} for validation; each needs one at least",
                    options.list.empty() ? whole->info().source : options.list, train.size(), validation.size()));
  }
  return {make_view(whole, std::move(train)), make_view(whole, std::move(validation))};
}

}  // namespace lockstep::data
