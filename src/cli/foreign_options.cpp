#include "cli/foreign_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "config/config.hpp"
#include "core/other_words.hpp"
#include "run/train/catalogue.hpp"

namespace lockstep::cli {

namespace {

using nlohmann::literals::operator""_json_pointer;

// Without dashes, and with _ for each dash inside.
constexpr std::array<std::string_view, 15> kRanks = {
    "n",     "np",   "nproc",  "nproc_per_node", "nprocs",     "num_processes", "num_procs", "num_gpus",
    "ngpus", "gpus", "n_gpus", "num_workers",    "world_size", "ntasks",        "processes"};
constexpr std::array<std::string_view, 8> kJobFile = {"c",    "config", "config_file", "config_path",
                                                      "conf", "cfg",    "f",           "job"};

template <class Names>
bool is_one_of(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool has_option(const CLI::App& command, const std::string& name) {
  return command.get_option_no_throw(name) != nullptr;
}

/// The key of the job that a word stands for; "": none.
std::string job_key(const std::string& word) {
  const Registries registries = Registries::built_in();
  const auto schema = nlohmann::json::parse(config::schema(train::catalogue_of(registries)));
  std::vector<std::string> keys;
  for (const auto& [key, value] : schema.at("/properties/job/properties"_json_pointer).items()) keys.push_back(key);
  return our_word_for(word, keys);
}

}  // namespace

std::string ours_of(const CLI::App& command, const std::string& full_name, const std::string& name) {
  std::string word = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  std::replace(word.begin(), word.end(), '-', '_');
  if (is_one_of(kRanks, word) && has_option(command, "--ranks")) return "; did you mean '--ranks'?";
  if (!has_option(command, "JOB")) return "";
  if (is_one_of(kJobFile, word)) return fmt::format("; give the job file by itself: {} JOB.yaml", full_name);
  const std::string key = name.starts_with("--") ? job_key(word) : "";
  return key.empty() ? "" : fmt::format("; settings of the job have no dashes, and an equals sign: {}=...", key);
}

}  // namespace lockstep::cli
