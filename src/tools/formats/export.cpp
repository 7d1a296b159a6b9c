#include "lockstep/export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "data/augment.hpp"
#include "data/readers/table_columns.hpp"
#include "graph/lora.hpp"
#include "lockstep/error.hpp"
#include "run/checkpoint/chosen_checkpoint.hpp"
#include "run/checkpoint/files.hpp"
#include "run/checkpoint/saved_model.hpp"
#include "run/train/catalogue.hpp"
#include "run/train/job_graph.hpp"
#include "run/train/loaded_model.hpp"
#include "tools/formats/onnx_model.hpp"
#include "tools/formats/torch_weights.hpp"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

void require_new(const std::string& path, bool force) {
  if (fs::is_directory(path)) {
    throw Error(ExitCode::cannot_create, fmt::format("{}: is a directory; name the file to write", path));
  }
  if (fs::exists(path) && !force) {
    throw Error(ExitCode::cannot_create,
                fmt::format("{}: the file exists; remove it, choose another name, or add --force", path));
  }
}

/// A checkpoint's model, in fp32 on the CPU, without the adapters of LoRA, which are merged into the weights; and what
/// is known of its data.
class CheckpointModel {
 public:
  /// `average`: whether to take the average of the weights, which the job must have.
  CheckpointModel(const std::string& path, std::optional<bool> average, const Registries* registries)
      : of_job_(registries == nullptr ? Registries::of_job(path) : Registries()),
        registries_(registries == nullptr ? of_job_ : *registries),
        communicator_(make_single_communicator()),
        model_(load(path, average)),
        graph_(without_lora()) {
    for (const auto* block : {&model_.saved().parameters, &model_.saved().states}) {
      for (std::size_t i = 0; i < block->size(); ++i) values_[block->name(i)] = block->at(i);
    }
    const Graph& graph = model_.graph();
    for (const Adapter& adapter : adapters_of(graph)) {
      const Value &a = graph.at(adapter.a), &b = graph.at(adapter.b);
      std::span<const float>& weight = values_.at(adapter.layer + ".weight");
      weight = merged_.emplace_back(
          merged_weight(weight, values_.at(a.name), values_.at(b.name), a.spec.shape.front(), adapter.scale));
    }
  }

  /// Layers whose adapters are merged.
  std::size_t merged() const { return merged_.size(); }
  /// `merge`: without adapters; else the model as it is trained, whose adapted weights values() has merged.
  formats::ExportedModel exported(bool merge = true) const {
    const DataSetInfo& info = model_.data();
    const input::PreparedData& data = model_.prepared();
    const Graph* const graph = merge ? &graph_ : &model_.graph();
    const bool table = !info.columns.empty();
    return {.graph = graph,
            .values = [this, graph](ValueId id) { return values_.at(graph->at(id).name); },
            .job = model_.job().name,
            .source = model_.saved().path,
            .labels = info.class_names,
            .tokens = info.token_text,
            .tokenizer = info.tokenizer,
            .mean = data.schema.mean,
            .stddev = data.schema.stddev,
            .prepare = model_.job().data.prepare,
            .inputs = inputs(),
            .outputs = outputs(),
            .columns = info.columns,
            .window_rows = info.window.rows,
            .spellings = spellings(),
            .missing = table ? data::missing_marks() : std::vector<std::string>(),
            .ignores_unknown = table && model_.job().data.train.unknown == UnknownCategory::ignore,
            .data = exported(data.schema).text()};
  }

  /// Who uses an exported model need not know which samples it was trained on.
  [[nodiscard]] static input::Schema exported(input::Schema schema) {
    schema.trained = {};
    return schema;
  }

  std::vector<std::map<std::string, std::string>> spellings() const {
    std::vector<std::map<std::string, std::string>> of_columns;
    for (const auto& column : model_.data().columns) of_columns.push_back(data::other_spellings(column.categories));
    return of_columns;
  }

  std::vector<formats::ExportedFile> adapter() const {
    const JobFile& job = model_.job();
    if (!job.model.lora || !job.initialize) {
      throw Error(ExitCode::usage,
                  fmt::format("--to peft: expected a run with model.lora that began with given weights "
                              "(initialize), which its adapters belong to, found one without {}; take "
                              "--to huggingface, which has all weights",
                              job.model.lora ? "initialize" : "model.lora"));
    }
    const LoraOptions& lora = *job.model.lora;
    return formats::peft_files(exported(false), {lora.rank, lora.alpha, lora.dropout, job.initialize->from});
  }

 private:
  std::vector<formats::ExportedInput> inputs() const {
    const data::Pipeline pipeline = model_.pipeline();
    std::vector<formats::ExportedInput> inputs;
    for (std::size_t i = 0; i < model_.inputs().size(); ++i) {
      const Feature& feature = model_.inputs()[i];
      auto [factor, shift] = pipeline.scale(i);
      if (feature.kind == Feature::Kind::image) {  // of a row, in which they repeat
        factor.resize(feature.spec.shape.back());
        shift.resize(factor.size());
      }
      inputs.push_back({feature, std::move(factor), std::move(shift)});
    }
    return inputs;
  }

  std::vector<formats::ExportedOutput> outputs() const {
    std::vector<formats::ExportedOutput> outputs;
    const bool alone = model_.outputs().size() == 1;
    for (const train::ModelOutput& output : model_.outputs()) {
      const bool named = output.classes.size() == output.size || (output.classes.size() == 2 && output.size == 1);
      outputs.push_back({.name = output.name,
                         .shape = output.shape,
                         .first = static_cast<std::int64_t>(output.first),
                         .activation = output.loss->activation,
                         .names = named || !alone ? output.classes : train::value_names(model_, output.size)});
    }
    return outputs;
  }

  train::LoadedModel load(const std::string& path, std::optional<bool> average) {
    const auto job = [this, path, average](bool need_data) {
      JobFile saved = checkpoint::load_saved_job(path, {"device=cpu", "precision=fp32"},
                                                 train::catalogue_of(registries_), need_data);
      if (average) saved.optimizer.average.value().evaluate = *average;
      return saved;
    };
    return {job(false), path, registries_, *communicator_, {}, [job] { return job(true); }};
  }

  Graph without_lora() const {
    JobFile job = model_.job();
    job.model.lora.reset();
    input::PreparedData data = model_.prepared();
    for (Feature& feature : data.features) feature.offsets.clear();  // who reads the export has no place to add them
    return train::make_prediction_graph(job, data, registries_, 1);
  }

  const Registries of_job_;
  const Registries& registries_;
  std::unique_ptr<Communicator> communicator_;
  train::LoadedModel model_;
  Graph graph_;
  std::map<std::string, std::span<const float>> values_;
  std::list<std::vector<float>> merged_;
};

/// Whether the average of the weights is written; none if the run has none.
std::optional<bool> takes_average(const ExportOptions& options, const checkpoint::Checkpoint& checkpoint) {
  if (checkpoint.manifest.progress.averaged == 0) {
    if (!options.average.value_or(false)) return std::nullopt;
    throw Error(ExitCode::data, fmt::format("--weights average: {} has no average of its weights; train with "
                                            "optimizer.average, or choose --weights trained",
                                            checkpoint.path));
  }
  return options.average ? *options.average : checkpoint::model_choice(checkpoint.manifest).average;
}

bool has_adapters(const checkpoint::Checkpoint& checkpoint) {
  const auto& tensors = checkpoint.manifest.tensors;
  return std::any_of(tensors.begin(), tensors.end(), [](const auto& tensor) { return is_adapter(tensor.name); });
}

/// `merged`: set to the number of layers whose adapters are merged. `target`: the name of the file.
std::vector<formats::ExportedFile> files_of(const ExportOptions& options, const checkpoint::Checkpoint& checkpoint,
                                            const Registries* registries, const std::string& target,
                                            std::int64_t& merged) {
  const std::optional<bool> average = takes_average(options, checkpoint);
  if (options.format == ExportFormat::lockstep && !has_adapters(checkpoint)) {
    return {{target, checkpoint::safetensors_of(checkpoint, average.value_or(false))}};
  }
  const CheckpointModel loaded(checkpoint.path, average, registries);
  if (options.format == ExportFormat::peft) return loaded.adapter();
  const formats::ExportedModel model = loaded.exported();
  merged = loaded.merged();
  switch (options.format) {
    case ExportFormat::torch:
      return formats::torch_files(model, target);
    case ExportFormat::onnx:
      return {{target, formats::onnx_model(model, options.layers_only)}};
    case ExportFormat::huggingface:
      return formats::huggingface_files(model);
    default:
      return {{target, formats::lockstep_weights(model)}};
  }
}

}  // namespace

ExportedFiles export_model(const std::string& from, const std::string& target, const ExportOptions& options,
                           const Registries* registries) {
  const bool into_folder = options.format == ExportFormat::huggingface || options.format == ExportFormat::peft;
  const fs::path folder = into_folder ? fs::path(target) : fs::path(target).parent_path();
  if (options.layers_only && options.format != ExportFormat::onnx) {
    throw Error(ExitCode::usage,
                fmt::format("--raw: expected --to onnx, found {}; leave it out", name_of(options.format)));
  }
  if (options.format != ExportFormat::onnx && target.ends_with(".onnx")) {
    throw Error(ExitCode::usage,
                fmt::format("{}: expected --to onnx for a file of that name, found --to {}; add it, or choose another "
                            "name",
                            target, name_of(options.format)));
  }
  if (!into_folder) require_new(target, options.overwrite);
  const auto [checkpoint, choice] = checkpoint::checkpoint_at(from);
  ExportedFiles result{.files = {}, .checkpoint = checkpoint.path, .choice = choice};
  const auto files = files_of(options, checkpoint, registries, fs::path(target).filename(), result.merged_layers);
  for (const auto& file : files) require_new((folder / file.name).string(), options.overwrite);
  if (into_folder) checkpoint::make_directories(checkpoint::real_files(), folder.string());
  for (const auto& file : files) {
    result.files.push_back({(folder / file.name).string(), file.bytes.size()});
    checkpoint::write_whole(checkpoint::real_files(), result.files.back().path, file.bytes);
  }
  return result;
}

}  // namespace lockstep
