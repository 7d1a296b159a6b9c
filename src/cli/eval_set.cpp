#include "cli/eval_set.hpp"

#include "cli/saved_model.hpp"
#include "config/files.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

namespace {

/// A source of its own, or none for a set that is (a part of) the training data.
const SourceOptions* own_source(const std::string& name, const Job& job) {
  const auto& source = name == "test" ? job.data.test : job.data.validation;
  return name != "train" && source ? &*source : nullptr;
}

std::shared_ptr<const DataSet> open_like(const std::string& name, const SourceOptions& source, BadWhenRead policy,
                                         const input::PreparedData& data, Communicator& communicator) {
  input::SourceIndexes indexes(data::default_cache_directory());
  std::shared_ptr<const DataSet> set;
  indexes.open_once_a_host(&communicator, [&] {
    set = indexes.open(name, source, &data.train->info());
    (void)indexes.keep();
  });
  return data::with_bad_samples(std::move(set), policy, name, data.replaced);
}

}  // namespace

void require_eval_set(const std::string& name, const Job& job) {
  if (name == "test" && !job.data.test) {
    throw Error(ExitCode::usage,
                "--set test: the job has no test data; add data.test to the job file, or choose --set validation");
  }
  const DataOptions& data = job.data;
  if (name == "validation" && !data.validation && data.validation_fraction == 0 && data.validation_list.empty()) {
    throw Error(ExitCode::usage,
                "--set validation: the job has no validation data; add data.validation to the job file, or "
                "choose --set train");
  }
}

EvalSet open_eval_set(const std::string& name, JobArgument& argument, const Job& job, const SavedFiles& files,
                      const Registries& registries, Communicator& communicator) {
  const SourceOptions* source = own_source(name, job);
  if (auto remembered = remembered_data(files, job, registries.augmentations); remembered && source != nullptr) {
    auto set = open_like(name, config::expanded(*source), job.data.bad_samples, *remembered, communicator);
    return {std::move(set), std::move(*remembered)};
  }
  const JobFile whole = argument.load(train::catalogue_of(registries));
  auto data = input::prepare_data(whole.data, whole.seed, whole.batch_size, registries.augmentations, {},
                                  {.communicator = &communicator, .with_test = name == "test"});
  if (name == "test") return {data.test, data};
  auto set = name == "train" ? data.train : data.validation;
  return {std::move(set), std::move(data)};
}

}  // namespace lockstep::cli
