#include "data/input/foreseen_data.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "data/open.hpp"
#include "data/sample_weights.hpp"
#include "data/soft_labels.hpp"

namespace lockstep::input {

namespace {

std::string told_by_files(const SourceOptions& source) {
  switch (source.kind) {
    case SourceKind::table:
      return "the columns of the table";
    case SourceKind::packed:
      return "what was packed";
    case SourceKind::program:
      return "the samples of the program";
    case SourceKind::own:
      return fmt::format("the samples that the reader '{}' makes", source.reader);
    default:
      return "the size of the images";
  }
}

bool has_labels(const DataSetInfo& info) {
  return std::any_of(info.features.begin(), info.features.end(),
                     [](const Feature& feature) { return feature.kind == Feature::Kind::label; });
}

/// A set of which only the description is known.
class ForeseenSet final : public DataSet {
 public:
  explicit ForeseenSet(DataSetInfo info) : info_(std::move(info)) {}
  const DataSetInfo& info() const override { return info_; }
  std::int64_t size() const override { return 0; }
  void read(std::int64_t id, Sample& /*out*/) const override {
    LOCKSTEP_CHECK(false, fmt::format("sample {} of a set that is only foreseen", id));
  }

 private:
  DataSetInfo info_;
};

/// Whether it is a model of the zoo that takes this from the data, since the job does not say it.
bool asks_for(const char* attribute, const ModelOptions& model, const ModelRegistry& models) {
  if (model.zoo.empty() || model.parameters.has(attribute)) return false;
  const auto& declared = models.at(model.zoo).attributes;
  return std::any_of(declared.begin(), declared.end(), [&](const auto& spec) { return spec.name == attribute; });
}

}  // namespace

bool are_drawn(const DataOptions& wanted) {
  const auto drawn = [](const SourceOptions& source) { return source.kind == SourceKind::digits; };
  return drawn(wanted.train) && (!wanted.validation || drawn(*wanted.validation)) && wanted.validation_list.empty() &&
         !wanted.soft_labels;
}

ForeseenData foresee_data(const DataOptions& wanted, const ModelOptions& model, std::uint64_t seed,
                          const DataRegistries& registries, const ModelRegistry& models) {
  ForeseenData foreseen;
  auto info = data::foresee(wanted.train);
  if (!info) {
    foreseen.unknown = told_by_files(wanted.train);
    return foreseen;
  }
  const bool by_class = has_labels(*info) && asks_for("classes", model, models);
  if (info->class_names.empty() && (by_class || data::has_soft_labels(wanted))) {
    foreseen.unknown = "the number of classes";
  } else if (info->vocabulary == 0 && asks_for("vocabulary", model, models)) {
    foreseen.unknown = "the number of distinct tokens";
  }
  if (!foreseen.unknown.empty()) return foreseen;
  PreparedData& data = foreseen.data;
  if (wanted.class_weights && !data::has_weights(*info)) {
    info->features.push_back(data::weight_feature());
  }
  data.train = std::make_shared<ForeseenSet>(std::move(*info));
  if (data::has_soft_labels(wanted)) data.train = data::with_one_hot_labels(data.train);
  if (wanted.has_validation()) data.validation = data.train;
  data.schema.info = data.train->info();
  data.describe(wanted, seed, registries);
  return foreseen;
}

}  // namespace lockstep::input
