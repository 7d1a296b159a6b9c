#include "train/evaluation_sets.hpp"

#include <fmt/format.h>

#include "config/files.hpp"
#include "lockstep/error.hpp"

namespace lockstep::train {

namespace {

/// A source of its own, or none for a set that is (a part of) the training data.
const SourceOptions* own_source(const std::string& name, const Job& job) {
  const auto& source = name == "test" ? job.data.test : job.data.validation;
  return name != "train" && source ? &*source : nullptr;
}

std::shared_ptr<const DataSet> open_like(const std::string& name, const SourceOptions& source, const DataSetInfo& train,
                                         Communicator& communicator) {
  input::SourceIndexes indexes(data::default_cache_directory());
  std::shared_ptr<const DataSet> set;
  indexes.open_once_a_host(&communicator, [&] {
    set = indexes.open(name, source, &train);
    (void)indexes.keep();
  });
  return set;
}

EvaluationSet one_of(const std::string& name, const input::PreparedData& data) {
  return {name == "train" ? data.train : data.validation, data.replaced};
}

}  // namespace

void require_evaluation_set(const std::string& name, const Job& job, const DataSets& own) {
  if (name != "validation" && name != "test" && name != "train") {
    throw Error(ExitCode::usage, fmt::format("expected the set validation, test or train, found '{}'", name));
  }
  if (name == "test" && !job.data.test) {
    throw Error(ExitCode::usage,
                "--set test: the job has no test data; add data.test to the job file, or choose --set validation");
  }
  const DataOptions& data = job.data;
  if (name == "validation" && !own.validation && !data.validation && data.validation_fraction == 0 &&
      data.validation_list.empty()) {
    throw Error(ExitCode::usage,
                "--set validation: the job has no validation data; add data.validation to the job file, or "
                "choose --set train");
  }
}

EvaluationSet open_evaluation_set(const std::string& name, const Job& job, const DataSets& own,
                                  const input::PreparedData& known, const std::function<JobFile()>& with_data,
                                  Communicator& communicator) {
  const bool is_open = known.sources != nullptr && name != "test";
  if (is_open) return one_of(name, known);
  auto set = name == "train" ? own.train : name == "validation" ? own.validation : nullptr;
  const SourceOptions* const source = own_source(name, job);
  if (!set && source != nullptr) set = open_like(name, config::expanded(*source), known.train->info(), communicator);
  if (set) return {data::with_bad_samples(std::move(set), job.data.bad_samples, name, known.replaced), known.replaced};
  const JobFile whole = with_data();
  return one_of(name, input::prepare_data(whole.data, whole.seed, whole.batch_size, *known.augmentations, own,
                                          {.communicator = &communicator}));
}

}  // namespace lockstep::train
