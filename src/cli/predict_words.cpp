// What images, tables and text have in common: which files are meant, and CSV on stdout.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/predict.hpp"
#include "config/files.hpp"
#include "core/say.hpp"
#include "core/words.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

namespace {

namespace fs = std::filesystem;

bool is_image_name(const fs::path& path) {
  const std::string ending = lower_case(path.extension().string());
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

struct FolderFiles {
  std::vector<std::string> found, others;  ///< others: passed over, though not hidden
};

FolderFiles files_in(const std::string& folder, FilesOfFolder kind) {
  FolderFiles files;
  for (const auto& entry : fs::recursive_directory_iterator(folder, fs::directory_options::follow_directory_symlink)) {
    const fs::path& path = entry.path();
    const bool dangles = entry.is_symlink() && !entry.exists();  // opening it says what is wrong
    if ((!entry.is_regular_file() && !dangles) || path.filename().string().starts_with('.')) continue;
    const bool is_one = kind == FilesOfFolder::all || is_image_name(path);
    (is_one ? files.found : files.others).push_back(path.string());
  }
  std::sort(files.found.begin(), files.found.end());
  std::sort(files.others.begin(), files.others.end());
  return files;
}

/// "4 files that are not called .jpg, .jpeg or .png: a.bmp, b.gif, c.webp and 1 more"
std::string others_text(const std::vector<std::string>& others) {
  return fmt::format("{} not called .jpg, .jpeg or .png: {}",
                     others.size() == 1 ? "1 file that is" : fmt::format("{} files that are", others.size()),
                     few_of(others));
}

/// Of the output's values, in the order of `i`.
std::string output_text(const train::ModelOutput& output, const std::vector<double>& values,
                        const std::vector<std::size_t>& order) {
  if (output.shape.size() > 1)
    return fmt::format("  {}  {} numbers; see --log csv\n", output.name, to_string(output.shape));
  if (output.size == 1) return fmt::format("  {}  {}\n", output.name, number_text(values[0], output.offset(0)));
  std::string text = fmt::format("  {}\n", output.name);
  for (const std::size_t i : order)
    text += fmt::format("    {:>8.4f}  {}\n", values[i], train::name_of_value(output, i));
  return text;
}

}  // namespace

std::string number_text(double value, double offset) {
  constexpr int kDigits = 6, kMost = std::numeric_limits<double>::digits10;
  const double difference = std::abs(value - offset), whole = std::abs(value);
  const bool differs = offset != 0 && whole > difference;
  const int more = !differs ? 0 : difference == 0 ? kMost : static_cast<int>(std::ceil(std::log10(whole / difference)));
  return fmt::format("{:.{}g}", value, std::min(kDigits + more, kMost));
}

void print_outputs(const train::LoadedModel& model, const PredictOptions& options, const std::string& key,
                   const std::vector<std::string>& label, const SamplePrediction& prediction) {
  using Json = nlohmann::ordered_json;
  Json line = {{"event", "predict"}, {key, key == "row" ? Json(label.front()) : Json(label)}};
  std::string text;
  for (const std::string& word : label) text += word + "\n";
  for (const train::ModelOutput& output : model.outputs()) {
    const auto first = prediction.values.begin() + output.first;
    const std::vector<double> values(first, first + output.size);
    const bool of_classes = output.classes.size() == output.size && !options.logits;
    std::vector<std::size_t> order(output.size);
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (of_classes) order = largest(values, options.top);
    text += output_text(output, values, order);
    Json& of_output = line["outputs"][output.name];
    for (const std::size_t i : order) {
      if (of_classes) {
        of_output["classes"].push_back({{"name", output.classes[i]}, {"index", i}, {"probability", values[i]}});
      } else {
        of_output["values"].push_back(values[i]);
      }
    }
  }
  fmt::print("{}", options.json ? line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n" : text);
}

std::vector<std::string> files_of_words(const std::vector<std::string>& words, FilesOfFolder kind, bool warn) {
  std::vector<std::string> files;
  for (const auto& word : words) {
    const bool folder = fs::is_directory(word), pattern = !folder && config::is_pattern(word) && !fs::exists(word);
    const FolderFiles in = folder    ? files_in(word, kind)
                           : pattern ? FolderFiles{config::expand(word), {}}
                                     : FolderFiles{{word}, {}};
    const auto& found = in.found;
    if (found.empty()) {
      const char* const of_folder =
          kind == FilesOfFolder::images ? "JPEG or PNG files in this folder" : "files in this folder";
      throw Error(ExitCode::usage,
                  fmt::format("predict: '{}': expected {}, found {}", word, folder ? of_folder : "files that match",
                              in.others.empty() ? "none" : others_text(in.others)));
    }
    if (warn && !in.others.empty()) {
      say("warning: {}: no prediction for {}\n", word, others_text(in.others));
    }
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

}  // namespace lockstep::cli
