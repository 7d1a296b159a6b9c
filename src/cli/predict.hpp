// What `lockstep predict` does, by kind of data: classes of images, text that continues a prompt, or the target of a
// table's rows. The training data need not be present: the checkpoint has what is needed from them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "train/loaded_model.hpp"

namespace lockstep::cli {

struct PredictOptions {
  std::string checkpoint = "newest";
  std::vector<std::string> files;  ///< images, or CSV files that name them; tables
  int top = 5;
  std::string prompt;
  bool has_prompt = false;
  std::int64_t tokens = 200;
  double temperature = 0.8;
  int top_k = 0;  ///< 0: all tokens
  std::uint64_t seed = 1;
  bool json = false;
  bool print = true;  ///< false: on ranks that only compute
};

/// What a sample is said to be: probabilities, or values.
struct SamplePrediction {
  bool probabilities = false;
  std::vector<double> values;
};
/// Predicts every sample of a set, with one model or several.
using PredictSet = std::function<std::vector<SamplePrediction>(const DataSet&)>;

/// `model`: says what samples and predictions are like; `predict` predicts them.
void predict_images(const train::LoadedModel& model, const PredictOptions& options, const PredictSet& predict);
void predict_table(const train::LoadedModel& model, const PredictOptions& options, const PredictSet& predict);
void predict_text(train::LoadedModel& model, const PredictOptions& options);

/// Indices of the `count` largest values, largest first; equal values in order of their indices.
[[nodiscard]] std::vector<std::size_t> largest(const std::vector<double>& values, int count);

}  // namespace lockstep::cli
