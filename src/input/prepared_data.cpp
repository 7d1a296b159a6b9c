#include "input/prepared_data.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/digest.hpp"
#include "data/sample_identities.hpp"
#include "data/sample_weights.hpp"
#include "data/soft_labels.hpp"
#include "data/split.hpp"
#include "data/statistics.hpp"
#include "device/threads.hpp"
#include "lockstep/error.hpp"

namespace lockstep::input {

namespace {

bool is_cut(const DataOptions& wanted, const DataSets& own) {
  return !own.validation && !wanted.validation && wanted.cuts_validation();
}

/// Only training counts samples by their weights.
void weigh(const DataOptions& wanted, PreparedData& data) {
  if (wanted.class_weights) {
    data.class_weights = data::class_weights(data.train->info(), *wanted.class_weights);
    data.train = data::with_class_weights(std::move(data.train), data.class_weights);
  }
  if (!data::has_weights(data.train->info())) return;
  if (wanted.mix) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: expected samples without weights, since a mixed sample is of two classes, found some "
                            "with; leave out mix or the weights",
                            wanted.mix->place.text()));
  }
  for (auto* set : {&data.validation, &data.test}) {
    if (*set) *set = data::with_equal_weights(std::move(*set));
  }
}

/// A source that a reader does not take for a test set because it is to be read as another one.
SourceOptions of_training(SourceOptions source) {
  if (source.part == SourcePart::automatic) source.part = SourcePart::train;
  return source;
}

void open_sets(const DataOptions& wanted, std::uint64_t seed, const DataSets& own, const PrepareOptions& how,
               SourceIndexes& indexes, PreparedData& data) {
  data.train = own.train;
  data.validation = own.validation;
  if (!data.train) {
    auto whole = how.known == nullptr ? indexes.open("train", wanted.train, nullptr)
                                      : indexes.open("train", of_training(wanted.train), how.known);
    data.is_cut = is_cut(wanted, own);
    if (data.is_cut) {
      data::SplitOptions options;
      options.fraction = wanted.validation_list.empty() ? wanted.validation_fraction : 0;
      options.fold = wanted.validation_fold;
      options.stratify = wanted.stratify;
      options.list = wanted.validation_list;
      options.seed = wanted.split_seed.value_or(seed);
      auto parts = data::split(whole, options);
      data.train = std::move(parts.train);
      data.validation = std::move(parts.validation);
    } else {
      data.train = std::move(whole);
    }
  }
  const DataSetInfo* like = &data.train->info();
  if (!data.validation && wanted.validation) {
    data.validation = indexes.open("validation", *wanted.validation, like);
  }
  if (how.with_test && wanted.test) data.test = indexes.open("test", *wanted.test, like);
  data.digests["train"] = data.train->info().digest;
  if (data.validation) data.digests["validation"] = data.validation->info().digest;
  if (data::has_soft_labels(wanted)) {
    data.train = wanted.soft_labels ? data::with_soft_labels(std::move(data.train), *wanted.soft_labels)
                                    : data::with_one_hot_labels(std::move(data.train));
    for (auto* set : {&data.validation, &data.test}) {
      if (*set) *set = data::with_one_hot_labels(std::move(*set));
    }
  }
  if (wanted.resample == Resample::bootstrap) data.train = data::bootstrap(std::move(data.train), seed);
  weigh(wanted, data);
  const auto by_policy = [&](std::shared_ptr<const DataSet>& set, const char* name) {
    set = data::with_bad_samples(std::move(set), wanted.bad_samples, name, data.replaced);
  };
  by_policy(data.train, "train");
  by_policy(data.validation, "validation");
  by_policy(data.test, "test");
}

/// Images, or columns of a table.
bool has_what_is_normalized(const DataSetInfo& info) {
  for (const auto& feature : info.features) {
    if (feature.kind == Feature::Kind::image || feature.kind == Feature::Kind::columns) return true;
  }
  return false;
}

/// What a set of its own has in common with the training set; "" if nothing is known.
std::string shared_text(const DataSet& set, const DataSet& train) {
  std::string shared = data::shared_samples(set, train);
  const DataSetInfo &info = set.info(), &trained = train.info();
  const auto is_of = [&info](std::string_view format) { return info.format.starts_with(format); };
  const bool whole_files = is_of("text") || is_of("tokens") || is_of("table") || is_of("packed");
  if (!shared.empty() || !whole_files || info.source != trained.source || info.format != trained.format) return shared;
  return fmt::format("it reads what training reads, too: {}", info.source);
}

std::string skipped_text(const std::vector<std::string>& faults) {
  constexpr std::size_t kNamed = 3;
  const std::size_t named = std::min(faults.size(), kNamed), others = faults.size() - named;
  return fmt::format("{} skipped: {}{}",
                     faults.size() == 1 ? "1 sample is" : fmt::format("{} samples are", faults.size()),
                     fmt::join(faults.begin(), faults.begin() + static_cast<std::ptrdiff_t>(named), "; "),
                     others > 0 ? fmt::format("; and {} more: `lockstep data info --all` names them", others) : "");
}

data::ChannelStatistics statistics_of(const DataSet& set, data::IndexNotes& notes) {
  return data::channel_statistics(set, {.threads = device::available_cores(), .notes = &notes});
}

void normalize(const DataOptions& wanted, SourceIndexes& indexes, PreparedData& data) {
  if (!wanted.normalize || !has_what_is_normalized(data.train->info())) return;
  data.mean = wanted.mean;
  data.stddev = wanted.stddev;
  if (!data.mean.empty()) return;
  const auto statistics = statistics_of(*data.train, indexes.notes("train"));
  data.mean = statistics.mean;
  data.stddev = statistics.stddev;
  std::replace(data.stddev.begin(), data.stddev.end(), 0.0, 1.0);  // what is constant stays so
}

void describe_sets(const DataOptions& wanted, SourceIndexes& indexes, PreparedData& data) {
  data.statistics["train"] = statistics_of(*data.train, indexes.notes("train"));
  const std::string cut_from = wanted.validation ? "validation" : "train";
  if (data.validation) data.statistics["validation"] = statistics_of(*data.validation, indexes.notes(cut_from));
  if (data.test) data.statistics["test"] = statistics_of(*data.test, indexes.notes("test"));
}

PreparedData open_all(const DataOptions& wanted, std::uint64_t seed, std::int64_t batch_size, const DataSets& own,
                      const PrepareOptions& options, SourceIndexes& indexes) {
  PreparedData data;
  open_sets(wanted, seed, own, options, indexes, data);
  if (data.train->size() < batch_size) {
    throw Error(ExitCode::data, fmt::format("job.data.train: expected at least one batch of {} samples, found {}; make "
                                            "batch_size smaller",
                                            batch_size, data.train->size()));
  }
  normalize(wanted, indexes, data);
  for (const char* const set : {"train", "validation"}) {
    const auto& ranges = indexes.targets(set);
    data.target_ranges.insert(data.target_ranges.end(), ranges.begin(), ranges.end());
  }
  if (wanted.normalize_target) data.targets = data::target_statistics(*data.train);
  if (options.with_statistics) describe_sets(wanted, indexes, data);
  data.indexes = indexes.keep();
  return data;
}

}  // namespace

data::Pipeline PreparedData::pipeline(const DataSet& set, bool training) const {
  data::PipelineOptions options;
  options.steps = prepare;
  if (training) options.steps.insert(options.steps.end(), augment.begin(), augment.end());
  options.mean = mean;
  options.stddev = stddev;
  options.seed = seed;
  return {set.info().features, options, registries->augmentations};
}

void PreparedData::describe(const DataOptions& options, std::uint64_t stream_seed, const DataRegistries& known) {
  prepare = options.prepare;
  augment = options.augment;
  registries = &known;
  seed = stream_seed;
  features = pipeline(*train, true).outputs();
  classes = static_cast<std::int64_t>(train->info().class_names.size());
  vocabulary = train->info().vocabulary;
}

std::string PreparedData::digest() const {
  return sha256(train->info().digest + (validation ? validation->info().digest : ""));
}

bool PreparedData::was_cached() const {
  return std::all_of(indexes.begin(), indexes.end(), [](const auto& index) { return index.was_cached; });
}

std::vector<std::string> warnings_of(const DataSetInfo& set, const std::string& prefix) {
  std::vector<std::string> messages;
  if (!set.skipped.empty()) messages.push_back(prefix + skipped_text(set.skipped));
  for (const auto& warning : set.warnings) messages.push_back(prefix + warning);
  return messages;
}

std::vector<std::string> PreparedData::warnings() const {
  std::vector<std::string> messages;
  const auto add = [&](const std::string& prefix, const DataSet* set) {
    if (set == nullptr) return;
    for (auto& message : warnings_of(set->info(), prefix)) messages.push_back(std::move(message));
  };
  const auto add_shared = [&](const std::string& name, const std::string& text) {
    if (!text.empty()) messages.push_back(name + text);
  };
  add("train: ", train.get());
  if (!is_cut) add("validation: ", validation.get());
  if (validation) {
    add_shared("validation: ", is_cut ? data::shared_samples(*validation, *train) : shared_text(*validation, *train));
  }
  add("test: ", test.get());
  if (test) add_shared("test: ", shared_text(*test, *train));
  return messages;
}

std::string PreparedData::weights_text() const {
  if (!data::has_weights(train->info())) return "";
  if (class_weights.empty()) return "of each sample";
  constexpr std::size_t kNamed = 10;
  const auto& names = train->info().class_names;
  std::string text = "by class:";
  for (std::size_t c = 0; c < std::min(names.size(), kNamed); ++c) {
    text += fmt::format("{} {} {:.4g}", c == 0 ? "" : ",", names[c], class_weights[c]);
  }
  return text + (names.size() > kNamed ? fmt::format(" and {} more", names.size() - kNamed) : "");
}

std::uint64_t PreparedData::bytes_read() const {
  std::uint64_t sum = train->bytes_read();
  if (validation && !is_cut) sum += validation->bytes_read();
  return sum + (test ? test->bytes_read() : 0);
}

PreparedData prepare_data(const DataOptions& wanted, std::uint64_t seed, std::int64_t batch_size,
                          const DataRegistries& registries, const DataSets& own, const PrepareOptions& options) {
  auto indexes = std::make_shared<SourceIndexes>(options.cache_directory, registries.readers);
  PreparedData data;
  indexes->open_once_a_host(options.communicator,
                            [&] { data = open_all(wanted, seed, batch_size, own, options, *indexes); });
  data.sources = std::move(indexes);
  data.describe(wanted, seed, registries);
  return data;
}

}  // namespace lockstep::input
