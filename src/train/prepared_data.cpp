#include "train/prepared_data.hpp"

#include <fmt/format.h>

#include "backend/threads.hpp"
#include "core/digest.hpp"
#include "data/open.hpp"
#include "data/split.hpp"
#include "data/statistics.hpp"
#include "lockstep/error.hpp"

namespace lockstep::train {

namespace {

void open_sets(const Job& job, const DataSets& own, PreparedData& data) {
  data.train = own.train;
  data.validation = own.validation;
  if (!data.train) {
    auto whole = data::open(job.data.train);
    const bool cut = !data.validation && !job.data.validation &&
                     (job.data.validation_fraction > 0 || !job.data.validation_list.empty());
    if (cut) {
      data::SplitOptions options;
      options.fraction = job.data.validation_list.empty() ? job.data.validation_fraction : 0;
      options.list = job.data.validation_list;
      options.seed = job.seed;
      auto parts = data::split(std::move(whole), options);
      data.train = std::move(parts.train);
      data.validation = std::move(parts.validation);
    } else {
      data.train = std::move(whole);
    }
  }
  if (!data.validation && job.data.validation) {
    data::IndexOptions options;
    options.like = &data.train->info();
    data.validation = data::open(*job.data.validation, options);
  }
}

bool has_images(const DataSetInfo& info) {
  for (const auto& feature : info.features) {
    if (feature.kind == Feature::Kind::image) return true;
  }
  return false;
}

}  // namespace

data::Pipeline PreparedData::pipeline(const Job& job, const AugmentRegistry& registry, const DataSet& set,
                                      bool training) const {
  data::PipelineOptions options;
  options.steps = job.data.prepare;
  if (training) options.steps.insert(options.steps.end(), job.data.augment.begin(), job.data.augment.end());
  options.mean = mean;
  options.deviation = deviation;
  options.seed = job.seed;
  return {set.info().features, options, registry};
}

void PreparedData::describe(const Job& job, const AugmentRegistry& registry) {
  features = pipeline(job, registry, *train, true).outputs();
  classes = static_cast<std::int64_t>(train->info().class_names.size());
  vocabulary = train->info().vocabulary;
}

std::string PreparedData::digest() const {
  return sha256(train->info().digest + (validation ? validation->info().digest : ""));
}

PreparedData prepare_data(const Job& job, const AugmentRegistry& registry, const DataSets& own) {
  PreparedData data;
  open_sets(job, own, data);
  const DataSetInfo& info = data.train->info();
  if (data.train->size() < job.batch_size) {
    throw Error(ExitCode::data, fmt::format("job.data.train: expected at least one batch of {} samples, found {}; make "
                                            "batch_size smaller",
                                            job.batch_size, data.train->size()));
  }
  if (job.data.normalize && has_images(info)) {
    data.mean = job.data.mean;
    data.deviation = job.data.deviation;
    if (data.mean.empty()) {
      const auto statistics = data::channel_statistics(*data.train, {.threads = backend::available_cores()});
      data.mean = statistics.mean;
      data.deviation = statistics.deviation;
    }
  }
  data.describe(job, registry);
  return data;
}

}  // namespace lockstep::train
