#include "run/checkpoint/peft_adapter.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/untrusted.hpp"
#include "core/whole_file.hpp"
#include "graph/lora.hpp"
#include "lockstep/error.hpp"

namespace lockstep::checkpoint {

namespace {

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

}  // namespace

bool is_peft_adapter(const std::string& folder) {
  return fs::is_regular_file(fs::path(folder) / kConfig);
}

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

}  // namespace lockstep::checkpoint
