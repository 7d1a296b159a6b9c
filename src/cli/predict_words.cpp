// What images, tables and text have in common: which files are meant, and CSV on stdout.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "cli/predict.hpp"
#include "config/files.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

namespace {

namespace fs = std::filesystem;

bool is_image_name(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

std::vector<std::string> images_in(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder, fs::directory_options::follow_directory_symlink)) {
    if (entry.is_regular_file() && is_image_name(entry.path())) found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::vector<std::string> files_of_words(const std::vector<std::string>& words) {
  std::vector<std::string> files;
  for (const auto& word : words) {
    const bool folder = fs::is_directory(word), pattern = !folder && config::is_pattern(word) && !fs::exists(word);
    const auto found = folder ? images_in(word) : pattern ? config::expand(word) : std::vector<std::string>{word};
    if (found.empty()) {
      throw Error(ExitCode::usage, fmt::format("predict: '{}': expected {}, found none", word,
                                               folder ? "JPEG or PNG files in this folder" : "files that match"));
    }
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

void print_csv(const std::vector<std::string>& fields) {
  std::string line;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) line += ',';
    if (fields[i].find_first_of(",\"\r\n") == std::string::npos) {
      line += fields[i];
      continue;
    }
    line += '"';
    for (const char c : fields[i]) line += c == '"' ? "\"\"" : std::string(1, c);
    line += '"';
  }
  fmt::print("{}\n", line);
}

std::vector<std::string> value_names(const train::LoadedModel& model, std::size_t values) {
  const auto& classes = model.data().class_names;
  if (classes.size() == values) return classes;
  if (classes.size() == 2 && values == 1) return {classes[1]};  // of binary cross entropy: the positive one
  const auto& targets = model.job().data.train.target;
  if (targets.size() == values) return targets;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < values; ++i) names.push_back(i == 0 ? "value" : fmt::format("value{}", i + 1));
  return names;
}

}  // namespace lockstep::cli
