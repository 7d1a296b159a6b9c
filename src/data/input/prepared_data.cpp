#include "data/input/prepared_data.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/digest.hpp"
#include "core/words.hpp"
#include "data/look_alikes.hpp"
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

/// Opens training and validation set, and perhaps the test set. `known`: the schema to read them through; null: that of
/// the training set.
void open_sets(const DataOptions& wanted, std::uint64_t seed, const DataSets& own, const DataSetInfo* known,
               bool with_test, SourceIndexes& indexes, PreparedData& data) {
  data.train = own.train;
  data.validation = own.validation;
  if (!data.train) {
    auto whole = indexes.open("train", wanted.train, known);
    data.sources_digest = whole->info().digest;
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
  const DataSetInfo* through = known != nullptr ? known : &data.train->info();
  if (!data.validation && wanted.validation) {
    data.validation = indexes.open("validation", *wanted.validation, through);
  }
  if (with_test && wanted.test) data.test = indexes.open("test", *wanted.test, through);
  indexes.add_list(wanted.validation_list);
  if (wanted.soft_labels) indexes.add_list(wanted.soft_labels->from);
  data.schema.digests["train"] = data.train->info().digest;
  if (data.validation) data.schema.digests["validation"] = data.validation->info().digest;
  if (data.sources_digest.empty()) data.sources_digest = data.train->info().digest;
  if (!data.is_cut && data.validation)
    data.sources_digest = sha256(data.sources_digest + data.validation->info().digest);
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

/// Of a set of its own, of which no sample is known to be in the training set: that both read one file, of which each
/// set is all.
std::string shared_source(const DataSetInfo& info, const DataSetInfo& trained) {
  const auto is_of = [&info](std::string_view format) { return info.format.starts_with(format); };
  const bool whole_files = is_of("text") || is_of("tokens") || is_of("table") || is_of("packed");
  if (info.digest == trained.digest) return "it holds the samples of the training set: " + info.source;
  if (!whole_files || info.source != trained.source || info.format != trained.format) return "";
  return fmt::format("it reads what training reads, too: {}", info.source);
}

/// What a set has in common with the training set; "" if nothing is known.
std::string shared_text(const PreparedData& data, const DataSet& set) {
  std::string shared =
      data.identities.empty() ? data::shared_samples(set, *data.train) : data::shared_samples(set, data.identities);
  const bool apart = !data.is_cut || &set != data.validation.get();
  return shared.empty() && apart ? shared_source(set.info(), data.train->info()) : shared;
}

/// Of a set that is evaluated: samples of classes that training has none of.
std::string untrained_classes(const DataSetInfo& info, const DataSetInfo& train) {
  std::vector<std::string> classes;
  std::int64_t samples = 0;
  for (std::size_t i = 0; i < std::min(info.class_counts.size(), train.class_counts.size()); ++i) {
    if (info.class_counts[i] == 0 || train.class_counts[i] > 0) continue;
    samples += info.class_counts[i];
    classes.push_back(info.class_names.at(i));
  }
  if (classes.empty()) return "";
  return fmt::format("{} of {}, which training has no sample of",
                     samples == 1 ? "1 sample is" : fmt::format("{} samples are", samples), few_of(classes));
}

std::string skipped_text(const std::vector<std::string>& faults) {
  constexpr std::size_t kNamed = 3;
  return fmt::format(
      "{} skipped: {}{}", faults.size() == 1 ? "1 sample is" : fmt::format("{} samples are", faults.size()),
      few_of(faults, kNamed, "; "), faults.size() > kNamed ? ": `lockstep data info --all` names them" : "");
}

data::ChannelStatistics statistics_of(const DataSet& set, data::IndexNotes& notes) {
  return data::channel_statistics(set, {.threads = device::available_cores(), .notes = &notes});
}

void learn_statistics(const DataOptions& wanted, SourceIndexes& indexes, PreparedData& data) {
  Schema& schema = data.schema;
  if (wanted.normalize_target) schema.targets = data::target_statistics(*data.train);
  if (!wanted.normalize || !has_what_is_normalized(schema.info)) return;
  schema.mean = wanted.mean;
  schema.stddev = wanted.stddev;
  if (!schema.mean.empty()) return;
  const auto statistics = statistics_of(*data.train, indexes.notes("train"));
  schema.mean = statistics.mean;
  schema.stddev = statistics.stddev;
  std::replace(schema.stddev.begin(), schema.stddev.end(), 0.0, 1.0);  // what is constant stays so
}

void describe_sets(const DataOptions& wanted, SourceIndexes& indexes, PreparedData& data) {
  data.statistics["train"] = statistics_of(*data.train, indexes.notes("train"));
  const std::string cut_from = wanted.validation ? "validation" : "train";
  if (data.validation) data.statistics["validation"] = statistics_of(*data.validation, indexes.notes(cut_from));
  if (data.test) data.statistics["test"] = statistics_of(*data.test, indexes.notes("test"));
}

PreparedData learn_here(const DataOptions& wanted, std::uint64_t seed, std::int64_t batch_size, const DataSets& own,
                        const LearnOptions& options, SourceIndexes& indexes) {
  PreparedData data;
  open_sets(wanted, seed, own, nullptr, options.with_test, indexes, data);
  if (data.train->size() < batch_size) {
    throw Error(ExitCode::data, fmt::format("job.data.train: expected at least one batch of {} samples, found {}; make "
                                            "batch_size smaller",
                                            batch_size, data.train->size()));
  }
  data.schema.info = data.train->info();
  data.schema.trained = data::sketch_of(*data.train, &data.identities);
  learn_statistics(wanted, indexes, data);
  for (const char* const set : {"train", "validation"}) {
    const auto& ranges = indexes.targets(set);
    data.target_ranges.insert(data.target_ranges.end(), ranges.begin(), ranges.end());
  }
  if (options.with_statistics) describe_sets(wanted, indexes, data);
  data.indexes = indexes.keep();
  return data;
}

}  // namespace

namespace {

data::Pipeline pipeline_of(const PreparedData& data, const std::vector<Feature>& features, bool training) {
  data::PipelineOptions options;
  options.steps = data.prepare;
  if (training) options.steps.insert(options.steps.end(), data.augment.begin(), data.augment.end());
  options.mean = data.schema.mean;
  options.stddev = data.schema.stddev;
  options.seed = data.seed;
  return {features, options, data.registries->augmentations};
}

}  // namespace

data::Pipeline PreparedData::pipeline(const DataSet& set, bool training) const {
  data::Pipeline made = pipeline_of(*this, set.info().features, training);
  for (const Feature& found : made.outputs()) {
    const auto expected = std::find_if(features.begin(), features.end(),
                                       [&](const Feature& feature) { return feature.name == found.name; });
    if (expected == features.end() || expected->spec == found.spec) continue;
    throw Error(
        ExitCode::data,
        fmt::format("{}: expected '{}' as {}, as the model reads it, found {}; {}", set.info().source, found.name,
                    to_string(expected->spec), to_string(found.spec),
                    found.kind == Feature::Kind::image ? "resize or crop all images to one size, under `prepare`"
                                                       : "give all sets the settings of the training set"));
  }
  return made;
}

void PreparedData::describe(const DataOptions& options, std::uint64_t stream_seed, const DataRegistries& known) {
  prepare = options.prepare;
  augment = options.augment;
  registries = &known;
  seed = stream_seed;
  features = pipeline_of(*this, schema.info.features, true).outputs();
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
  for (const auto& warning : data::look_alikes(schema.info)) messages.push_back("train: " + warning);
  add_shared("train: ", lone_class(train->info()));
  if (!is_cut) add("validation: ", validation.get());
  if (validation) add_shared("validation: ", shared_text(*this, *validation));
  add("test: ", test.get());
  if (test) add_shared("test: ", shared_text(*this, *test));
  if (validation) add_shared("validation: ", untrained_classes(validation->info(), train->info()));
  if (test) add_shared("test: ", untrained_classes(test->info(), train->info()));
  return messages;
}

std::string lone_class(const DataSetInfo& info) {
  const auto has_samples = [](std::int64_t count) { return count > 0; };
  const auto& counts = info.class_counts;
  const auto first = std::find_if(counts.begin(), counts.end(), has_samples);
  if (first == counts.end() || std::any_of(first + 1, counts.end(), has_samples)) return "";
  return fmt::format("all {} samples are of one class, '{}': there is nothing to tell apart, and every model is right",
                     *first, info.class_names.at(first - counts.begin()));
}

std::string shared_with_training(const Schema& schema, const DataSet& set, bool is_cut) {
  std::string shared = data::shared_samples(set, schema.trained);
  return shared.empty() && !is_cut ? shared_source(set.info(), schema.info) : shared;
}

std::string PreparedData::weights_text() const {
  if (!data::has_weights(train->info())) return "";
  if (class_weights.empty()) return "of each sample";
  std::vector<std::string> classes;
  for (std::size_t c = 0; c < class_weights.size(); ++c) {
    classes.push_back(fmt::format("{} {:.4g}", train->info().class_names[c], class_weights[c]));
  }
  return "by class: " + few_of(classes, 10);
}

std::uint64_t PreparedData::bytes_read() const {
  std::uint64_t sum = train->bytes_read();
  if (validation && !is_cut) sum += validation->bytes_read();
  return sum + (test ? test->bytes_read() : 0);
}

PreparedData learn(const DataOptions& wanted, std::uint64_t seed, std::int64_t batch_size,
                   const DataRegistries& registries, const DataSets& own, const LearnOptions& options) {
  auto indexes = std::make_shared<SourceIndexes>(options.cache_directory, registries.readers);
  PreparedData data;
  indexes->open_once_a_host(options.communicator,
                            [&] { data = learn_here(wanted, seed, batch_size, own, options, *indexes); });
  data.sources = std::move(indexes);
  data.describe(wanted, seed, registries);
  for (const auto& set : {data.validation, data.test}) {
    if (set) (void)data.pipeline(*set, false);  // says what does not fit
  }
  return data;
}

PreparedData apply(Schema schema, const DataOptions& wanted, std::uint64_t seed, const DataRegistries& registries) {
  PreparedData data;
  data.schema = std::move(schema);
  data.describe(wanted, seed, registries);
  return data;
}

std::shared_ptr<const DataSet> open_set(const PreparedData& model, const std::string& name, const SourceOptions& source,
                                        Communicator& communicator) {
  SourceIndexes indexes(cache_directory(), model.registries->readers);
  const DataSetInfo known = data::with_hard_labels(model.schema.info);
  std::shared_ptr<const DataSet> set;
  indexes.open_once_a_host(&communicator, [&] {
    set = indexes.open(name, source, &known);
    (void)indexes.keep();
  });
  return set;
}

PreparedData open_as_trained(const PreparedData& model, const std::string& name, const JobFile& job,
                             const DataSets& own, Communicator& communicator) {
  SourceIndexes indexes(cache_directory(), model.registries->readers);
  PreparedData data = apply(model.schema, job.data, job.seed, *model.registries);
  const DataSetInfo known = data::with_hard_labels(model.schema.info);
  indexes.open_once_a_host(&communicator, [&] {
    open_sets(job.data, job.seed, own, &known, false, indexes, data);
    (void)indexes.keep();
  });
  const auto then = model.schema.digests.find(name);
  if (then != model.schema.digests.end() && data.schema.digests.at(name) != then->second) {
    throw Error(ExitCode::data,
                fmt::format("{}: the data, or how they are split, have changed since the model was trained, so its {} "
                            "samples are not known; restore them, or evaluate others as data.test, with --set test",
                            job.data.train.place.text(), name == "train" ? "training" : name));
  }
  return data;
}

}  // namespace lockstep::input
