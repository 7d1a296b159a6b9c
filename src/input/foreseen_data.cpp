#include "input/foreseen_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "data/open.hpp"
#include "data/sample_weights.hpp"
#include "data/soft_labels.hpp"
#include "input/data_facts.hpp"

namespace lockstep::input {

namespace {

/// As the readers say it once they have the files; none: only the files tell what a sample is. Names of classes and the
/// vocabulary are missing where these are of the files.
std::optional<DataSetInfo> told_by(const SourceOptions& source) {
  const Feature label{"label", Feature::Kind::label, {DType::i32, {}}};
  const TensorSpec window{DType::i32, {source.context}};
  const bool bytes = source.tokenizer == Tokenizer::bytes && source.tokenizer_file.empty();
  DataSetInfo info;
  switch (source.kind) {
    case SourceKind::digits:
      return data::open(source)->info();
    case SourceKind::cifar:
      info.features = {{"image", Feature::Kind::image, {DType::u8, {32, 32, 3}}}, label};
      break;
    case SourceKind::texts:
      if (bytes) info.vocabulary = 256;
      info.features = {{"tokens", Feature::Kind::tokens, window},
                       {std::string(kLength), Feature::Kind::tensor, {DType::i32, {}}},
                       label};
      break;
    case SourceKind::text:
      if (bytes) info.vocabulary = source.masked > 0 ? 257 : 256;
      [[fallthrough]];
    case SourceKind::tokens:
      info.features = {{"tokens", Feature::Kind::tokens, window}, {"target", Feature::Kind::tokens, window}};
      break;
    default:
      return std::nullopt;
  }
  info.format = name_of(source.kind);
  if (!source.weights.empty()) info.features.push_back({data::kSampleWeight, Feature::Kind::weight, {DType::f32, {}}});
  return info;
}

std::string told_by_files(const SourceOptions& source) {
  switch (source.kind) {
    case SourceKind::table:
      return "the columns of the table";
    case SourceKind::packed:
      return "what was packed";
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
  auto info = told_by(wanted.train);
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
    info->features.push_back({data::kSampleWeight, Feature::Kind::weight, {DType::f32, {}}});
  }
  data.train = set_without_samples(std::move(*info));
  if (data::has_soft_labels(wanted)) data.train = data::with_one_hot_labels(data.train);
  if (wanted.has_validation()) data.validation = data.train;
  data.describe(wanted, seed, registries);
  return foreseen;
}

}  // namespace lockstep::input
