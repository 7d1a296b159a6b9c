#include "run/checkpoint/saved_model.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "comm/transport/point_to_point.hpp"
#include "comm/transport/work_together.hpp"
#include "core/files.hpp"
#include "core/nearest.hpp"
#include "core/untrusted.hpp"
#include "core/words.hpp"
#include "graph/lora.hpp"
#include "lockstep/error.hpp"
#include "lockstep/graph.hpp"
#include "run/checkpoint/chosen_checkpoint.hpp"
#include "run/checkpoint/files.hpp"
#include "run/checkpoint/reader.hpp"
#include "run/checkpoint/run_directory.hpp"
#include "run/checkpoint/safetensors.hpp"
#include "run/checkpoint/transformers_config.hpp"
#include "run/checkpoint/weights_file.hpp"

namespace lockstep::checkpoint {

namespace {

// Adapters of LoRA as Hugging Face's PEFT saves them: a folder with adapter_config.json and adapter_model.safetensors.

struct PeftAdapter {
  std::string base;  ///< where the model that it adapts is: as the adapter names it, from here or from its own folder
  SafetensorsFile tensors;
};

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char* kConfig = "adapter_config.json";
constexpr const char* kTensors = "adapter_model.safetensors";

/// Settings that change what an adapter computes, or add or change other weights, at what they are without that.
bool is_plain(std::string_view key, const Json& value) {
  if (key == "init_lora_weights") return !value.is_string() || value == "gaussian";
  if (value.is_null() || value == false || value == "none") return true;
  return key.ends_with("pattern") && value.is_object() && value.empty();
}

void require_plain(const std::string& file, const Json& config) {
  if (config.value("peft_type", Json()) != "LORA") {
    throw Error(ExitCode::data, fmt::format("{}: expected \"peft_type\": \"LORA\", found {}", file,
                                            config.value("peft_type", Json()).dump()));
  }
  constexpr std::array<const char*, 10> kSettings{"use_dora",
                                                  "use_rslora",
                                                  "bias",
                                                  "lora_bias",
                                                  "rank_pattern",
                                                  "alpha_pattern",
                                                  "layer_replication",
                                                  "megatron_config",
                                                  "init_lora_weights",
                                                  "trainable_token_indices"};
  for (const char* const key : kSettings) {
    if (!config.contains(key) || is_plain(key, config[key])) continue;
    throw Error(ExitCode::data,
                fmt::format("{}: expected plain LoRA, found \"{}\": {}; merge the adapter into its model "
                            "with PEFT (merge_and_unload) and begin from that",
                            file, key, config[key].dump()));
  }
}

std::string base_of(const std::string& folder, const std::string& file, const Json& config) {
  const auto found = config.find("base_model_name_or_path");
  const std::string name = found != config.end() && found->is_string() ? found->get<std::string>() : "";
  for (const fs::path& place : {fs::path(name), fs::path(folder) / name}) {
    if (!name.empty() && fs::exists(place)) return place.string();
  }
  throw Error(ExitCode::data, fmt::format("{}: expected base_model_name_or_path to be the folder or file of the model "
                                          "that it adapts, found '{}', which is not here; write its place there",
                                          file, name));
}

/// Whether the folder is one of PEFT.
bool is_peft_adapter(const std::string& folder) {
  return fs::is_regular_file(fs::path(folder) / kConfig);
}

/// Throws Error(data) for adapters of another kind than those of `graph` (DoRA, biases, a rank for each layer), for
/// another factor alpha / rank, and for a base that is not there; Error(configuration) if the graph has no adapters.
PeftAdapter read_peft_adapter(const std::string& folder, const Graph& graph) {
  const std::string file = (fs::path(folder) / kConfig).string();
  const std::vector<Adapter> adapters = adapters_of(graph);
  if (adapters.empty()) {
    throw Error(ExitCode::configuration, fmt::format("initialize: expected a model with model.lora for the adapter {}, "
                                                     "found one without; set it as {} has it",
                                                     folder, file));
  }
  const auto text = read_whole_file(file);
  const bool readable = text && !nests_too_deep(*text);
  const Json config = readable ? Json::parse(*text, nullptr, /*allow_exceptions=*/false) : Json();
  const auto number = [&](const char* key) {
    const bool is_there = config.is_object() && config.contains(key) && config[key].is_number();
    return is_there ? config[key].get<double>() : 0;
  };
  const double rank = number("r"), alpha = number("lora_alpha");
  if (config.is_object()) require_plain(file, config);
  if (rank <= 0 || alpha <= 0) {
    throw Error(ExitCode::data, fmt::format("{}: expected an object with the numbers 'r' and 'lora_alpha'", file));
  }
  const double ours = adapters.front().scale;
  if (std::abs(alpha / rank - ours) > 1e-6 * ours) {
    throw Error(ExitCode::data,
                fmt::format("{}: expected lora_alpha / r of {}, which is the job's alpha / rank, found {} / {}; set "
                            "model.lora to rank: {}, alpha: {}",
                            file, ours, alpha, rank, rank, alpha));
  }
  return {base_of(folder, file, config), SafetensorsFile::read((fs::path(folder) / kTensors).string())};
}

namespace fs = std::filesystem;

using ReadSome = std::function<void()>;

Checkpoint one_at(const std::string& path, const ReadSome& read_some) {
  std::string why;
  if (auto checkpoint = read_checkpoint(path, why, read_some)) return *checkpoint;
  throw Error(ExitCode::data,
              fmt::format("--checkpoint: expected auto, newest, best, a checkpoint's directory or a .safetensors "
                          "file; {}",
                          why));
}

SavedFiles find(const std::string& which, const Job& job, const ReadSome& read_some) {
  SavedFiles found{.path = which, .choice = {}, .checkpoint = {}, .weights = {}};
  if (which == "newest" || which == "best" || which == "auto") {
    ChosenCheckpoint chosen = choose_checkpoint(job.run_directory + "/checkpoints", which,
                                                job.early_stop && job.early_stop->restore_best, read_some);
    found.choice = chosen.choice;
    found.checkpoint = std::move(chosen.checkpoint);
  } else if (fs::is_regular_file(which)) {
    auto weights = read_whole_file(which, read_some);
    if (!weights) throw Error(ExitCode::data, fmt::format("--checkpoint: cannot open '{}'", which));
    found.weights = std::move(*weights);
  } else {
    found.checkpoint = one_at(which, read_some);
  }
  if (found.checkpoint) found.path = found.checkpoint->path;
  return found;
}

void add_shapes(const exec::TensorBlock& block, std::vector<NamedShape>& shapes) {
  for (std::size_t i = 0; i < block.size(); ++i) shapes.push_back({block.name(i), block.shape(i)});
}

/// Whether the file has none of the model's LoRA matrices, which then begin as usual.
bool lacks_adapters(const WeightsFile& file, const std::vector<NamedShape>& model) {
  return std::none_of(model.begin(), model.end(),
                      [&](const NamedShape& tensor) { return is_adapter(tensor.name) && file.has_part(tensor.name); });
}

void fill(const WeightsFile& file, SavedModel& model) {
  std::vector<NamedShape> shapes;
  for (const auto* block : {&model.parameters, &model.states}) add_shapes(*block, shapes);
  const bool begins = lacks_adapters(file, shapes);  // they are 0 then: a file with merged weights, or without any
  if (begins) std::erase_if(shapes, [](const NamedShape& tensor) { return is_adapter(tensor.name); });
  file.require(shapes);
  for (auto* block : {&model.parameters, &model.states}) {
    for (std::size_t i = 0; i < block->size(); ++i) {
      if (!begins || !is_adapter(block->name(i))) file.copy(block->name(i), block->shape(i), block->at(i));
    }
  }
}

bool has_tensor(const Checkpoint& checkpoint, const std::string& name) {
  const auto& tensors = checkpoint.manifest.tensors;
  return std::any_of(tensors.begin(), tensors.end(), [&](const auto& tensor) { return tensor.name == name; });
}

// A state of the optimizer has the name of another tensor before a colon.
bool is_state_of_optimizer(const std::string& name, const Checkpoint& checkpoint) {
  const auto colon = name.rfind(':');
  return colon != std::string::npos && has_tensor(checkpoint, name.substr(0, colon));
}

std::string average_suffix() {
  return std::string(":") + optim::kAverageName;
}

/// All files that an index names, which are beside it. Throws Error(data) for what is no such index.
SafetensorsFile read_shards(const std::string& index) {
  const auto text = read_whole_file(index);
  if (!text)
    throw Error(ExitCode::data, fmt::format("{}: cannot open; expected the index of safetensors files", index));
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  const auto files = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || files == json.end() || !files->is_object() || files->empty()) {
    throw Error(ExitCode::data, fmt::format("{}: expected the index of safetensors files, found JSON without a map "
                                            "'weight_map' of tensors and files",
                                            index));
  }
  std::set<std::string> names;
  for (const auto& [tensor, file] : files->items()) {
    if (!file.is_string()) continue;
    const auto name = file.get<std::string>();
    if (!is_plain_name(name)) {
      throw Error(ExitCode::data,
                  fmt::format("{}: expected names of files beside it, found '{}'", index, name.substr(0, 100)));
    }
    names.insert(name);
  }
  SafetensorsFile all(index);
  for (const auto& name : names) {
    all.add(SafetensorsFile::read((fs::path(index).parent_path() / name).string()));
  }
  return all;
}

constexpr const char* kSchema = "data";  ///< as in a manifest

std::string model_file(const std::vector<NamedSpan>& tensors, const std::string& schema = "") {
  std::map<std::string, std::string> metadata = {{"format", "lockstep"}};
  if (!schema.empty()) metadata[kSchema] = schema;
  return to_safetensors(tensors, metadata);
}

struct SavedJob {
  std::string text, manifest;
  bool of_run = false;  ///< of the newest checkpoint in a run's directory
};

SavedJob saved_job(const std::string& directory) {
  const bool one = fs::exists(directory + "/manifest.json");
  std::string why = "no checkpoints in it";
  for (const auto& path : one ? std::vector{directory} : list_checkpoints(directory + "/checkpoints")) {
    const std::string manifest = path + "/manifest.json";
    if (const auto text = job_of_manifest(manifest, why)) return {*text, manifest, !one};
  }
  throw Error(ExitCode::data,
              fmt::format("{}: expected a job file, or the directory of a run or checkpoint, found a folder with {}",
                          directory, why));
}

}  // namespace

JobFile load_saved_job(const std::string& directory, const std::vector<std::string>& overrides,
                       const config::Catalogue& catalogue, bool need_data) {
  const SavedJob saved = saved_job(directory);
  JobFile job = config::load_text(saved.text, saved.manifest, overrides, catalogue, need_data);
  const auto moves = [](const std::string& word) { return word.starts_with("run_directory="); };
  if (saved.of_run && std::none_of(overrides.begin(), overrides.end(), moves)) job.run_directory = directory;
  return job;
}

std::vector<config::PluginPath> plugins_of_saved_job(const std::string& directory,
                                                     const std::vector<std::string>& overrides) {
  const SavedJob saved = saved_job(directory);
  return config::plugins_of_text(saved.text, saved.manifest, overrides);
}

SavedFiles read_saved_files(const std::string& which, const Job& job, Communicator& communicator) {
  SavedFiles files{.path = which, .choice = {}, .checkpoint = {}, .weights = {}};
  comm::work_of_first_rank(communicator, {"checkpoint", 0, job.timeout()}, [&](comm::WorkProgress& progress) {
    files = find(which, job, [&] { progress.advance(); });
  });
  files.checkpoint = broadcast_checkpoint(std::move(files.checkpoint), communicator, job.timeout());
  if (files.checkpoint) {
    files.path = files.checkpoint->path;
    return files;
  }
  files.weights = comm::broadcast_text(communicator, std::move(files.weights), 0, {"checkpoint", 0, job.timeout()});
  return files;
}

std::string schema_of(const SavedFiles& files) {
  if (files.checkpoint) return files.checkpoint->manifest.progress.schema;
  const std::string schema = safetensors_metadata(files.weights)[kSchema];
  return schema.starts_with("{\"format\":") ? schema : "";  // else it is another program's
}

SavedModel load_saved_model(const SavedFiles& files, const Graph& graph, const Job& job, Communicator& communicator) {
  SavedModel model{.path = files.path,
                   .choice = files.choice,
                   .step = files.checkpoint ? files.checkpoint->manifest.progress.step : -1,
                   .parameters = {graph, graph.parameters},
                   .states = {graph, graph.states},
                   .schema = schema_of(files)};
  if (!files.checkpoint) {
    const WeightsFile file(SafetensorsFile::parse(files.weights, files.path), graph,
                           {.names = job.initialize ? job.initialize->names : WeightNames::automatic,
                            .map = job.initialize ? job.initialize->map : std::map<std::string, std::string>{},
                            .remedy = "write it with metadata={'format': 'pt'} for PyTorch's order, {'format': "
                                      "'lockstep'} for lockstep's"});
    fill(file, model);
    return model;
  }
  Targets targets;
  add_targets(model.parameters, "", targets);
  add_targets(model.states, "", targets);
  const auto& average = job.optimizer.average;
  if (average && average->evaluate && files.checkpoint->manifest.progress.averaged > 0) {
    for (std::size_t i = 0; i < model.parameters.size(); ++i) {
      auto target = targets.extract(model.parameters.name(i));
      target.key() += average_suffix();
      targets.insert(std::move(target));
    }
  }
  CheckpointReader reader(communicator, job.timeout());
  const auto faults = reader.read(*files.checkpoint);
  if (!faults.empty()) throw Error(ExitCode::data, faults.front());
  reader.load(*files.checkpoint, targets);
  return model;
}

std::string safetensors_of(const SavedModel& model) {
  std::vector<NamedSpan> tensors;
  for (const auto* block : {&model.parameters, &model.states}) {
    for (std::size_t i = 0; i < block->size(); ++i) tensors.push_back({block->name(i), block->shape(i), block->at(i)});
  }
  return model_file(tensors, model.schema);
}

std::string safetensors_of(const Checkpoint& checkpoint, bool average) {
  std::vector<std::vector<float>> values;
  std::vector<NamedSpan> tensors;
  Targets targets;
  for (const auto& tensor : checkpoint.manifest.tensors) {
    if (is_state_of_optimizer(tensor.name, checkpoint)) continue;
    values.emplace_back(static_cast<std::size_t>(elements(tensor.shape)));
    const std::string averaged = tensor.name + average_suffix();
    targets[average && has_tensor(checkpoint, averaged) ? averaged : tensor.name] = {tensor.shape, values.back()};
    tensors.push_back({tensor.name, tensor.shape, values.back()});
  }
  load(checkpoint, targets);
  return model_file(tensors, checkpoint.manifest.progress.schema);
}

namespace {

void require_matches(const InitializeOptions& options, const Place& place, const std::vector<std::string>& names) {
  for (const auto& pattern : options.only) {
    if (std::any_of(names.begin(), names.end(), [&](const auto& name) { return matches(pattern, name); })) continue;
    const std::string where = place.text();
    throw Error(ExitCode::configuration,
                fmt::format("{}: expected a pattern over the model's parameters, but none matches '{}'{}",
                            where.empty() ? "job.initialize.only" : where, pattern, did_you_mean(pattern, names)));
  }
}

/// The tensors of a safetensors file, of all that an index (.json) names, of a folder with either, or of a checkpoint;
/// of a run's directory those that the run is used by (chosen_checkpoint.hpp).
struct Weights {
  SafetensorsFile file;
  std::string chosen = {};  ///< "its best checkpoint, step-00000090", of a run's directory
};

Weights weights_at(const std::string& path) {
  const fs::path folder = path;
  const bool is_best = folder.filename() == "best" && !best_checkpoint(folder.parent_path()).empty();
  if (is_best || fs::exists(folder / "manifest.json") || fs::exists(folder / "checkpoints")) {
    const auto [checkpoint, choice] = checkpoint_at(path);
    const bool average = model_choice(checkpoint.manifest).average;
    return {SafetensorsFile::parse(safetensors_of(checkpoint, average), path),
            choice.empty() || is_best
                ? ""
                : fmt::format("its {} checkpoint, {}", choice, fs::path(checkpoint.path).filename().string())};
  }
  if (path.ends_with(".json")) return {read_shards(path)};
  if (!fs::is_directory(folder)) return {SafetensorsFile::read(path)};
  const fs::path index = folder / "model.safetensors.index.json", whole = folder / "model.safetensors";
  if (fs::exists(index)) return {read_shards(index.string())};
  if (fs::exists(whole)) return {SafetensorsFile::read(whole.string())};
  throw Error(ExitCode::data, fmt::format("{}: expected a checkpoint, a run's directory, or a folder with "
                                          "model.safetensors or its index, found none of them in it",
                                          path));
}

/// As weights_at(); of an adapter of PEFT those of its base, and its own.
Weights weights_of(const std::string& from, const Graph& graph) {
  if (!is_peft_adapter(from)) return weights_at(from);
  PeftAdapter adapter = read_peft_adapter(from, graph);
  Weights weights = weights_at(adapter.base);
  weights.file.add(std::move(adapter.tensors));
  return weights;
}

struct FittingFile {
  WeightsFile file;
  Initialized counts;
  std::set<std::string> taken;  ///< tensors of the model that have values of the file
};

/// `model`: the tensors of the whole model.
FittingFile fitting_file(const InitializeOptions& options, const Place& place, const Graph& graph,
                         const std::vector<NamedShape>& model) {
  auto [weights, chosen] = weights_of(options.from, graph);
  WeightsFile file(std::move(weights), graph,
                   {.names = options.names, .map = options.map, .remedy = "set initialize.names to torch or lockstep"});
  Initialized counts{.names = file.names(), .chosen = std::move(chosen), .schema = file.metadata(kSchema)};
  if (counts.names == WeightNames::huggingface) counts.outputs = output_names_at(options.from);
  const bool begins = lacks_adapters(file, model);
  std::vector<std::string> names;
  std::vector<NamedShape> taken;
  std::set<std::string> taken_names;
  for (const NamedShape& tensor : model) {
    names.push_back(tensor.name);
    const bool takes =
        (options.only.empty() || matches_any(options.only, tensor.name)) && !(begins && is_adapter(tensor.name));
    ++(takes ? counts.from_file : counts.first_values);
    if (!takes) continue;
    taken.push_back(tensor);
    taken_names.insert(tensor.name);
  }
  require_matches(options, place, names);
  file.require(taken);
  return {std::move(file), counts, std::move(taken_names)};
}

}  // namespace

Initialized check_initialization(const InitializeOptions& options, const Place& place, const Graph& graph) {
  std::vector<NamedShape> model;
  for (const auto* values : {&graph.parameters, &graph.states}) {
    for (const ValueId id : *values) model.push_back({graph.at(id).name, graph.at(id).spec.shape});
  }
  return fitting_file(options, place, graph, model).counts;
}

Initialized initialize_from_file(const InitializeOptions& options, const Place& place, const Graph& graph,
                                 const WholeModel& whole, optim::Model& own, const std::function<void()>& advance) {
  std::vector<NamedShape> model;
  for (const auto* tensors : {&whole.parameters, &whole.states}) {
    for (const auto& tensor : *tensors) model.push_back({tensor.name, tensor.shape});
  }
  const auto [file, counts, taken] = fitting_file(options, place, graph, model);
  for (auto* block : {&own.parameters, &own.states}) {
    for (std::size_t i = 0; i < block->size(); ++i) {
      if (!taken.contains(block->name(i))) continue;
      advance();
      for (const exec::Extent& extent : block->own(i)) {
        file.copy(block->name(i), block->shape(i), block->at(i, extent), extent.begin);
      }
    }
  }
  return counts;
}

}  // namespace lockstep::checkpoint
