#include "run/checkpoint/transformers_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/files.hpp"
#include "core/untrusted.hpp"

namespace lockstep::checkpoint {

std::optional<std::vector<std::string>> label_names(const std::string& id2label) {
  const auto labels = nlohmann::json::parse(id2label, nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> names;
  if (!labels.is_object()) return names;
  bool placeholders = true;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto found = labels.find(std::to_string(i));
    if (found == labels.end() || !found->is_string()) return std::nullopt;
    names.push_back(found->get<std::string>());
    if (std::count(names.begin(), names.end(), names.back()) > 1) return std::nullopt;
    placeholders = placeholders && names.back() == fmt::format("LABEL_{}", i);
  }
  return placeholders ? std::vector<std::string>() : names;
}

std::vector<std::string> output_names_at(const std::string& from) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::is_directory(from) ? fs::path(from) : fs::path(from).parent_path();
  const auto text = read_whole_file((folder / "config.json").string());
  if (!text || nests_too_deep(*text)) return {};
  const auto config = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object() || !config.contains("id2label")) return {};
  return label_names(config["id2label"].dump()).value_or(std::vector<std::string>());
}

}  // namespace lockstep::checkpoint
