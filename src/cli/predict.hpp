// What `lockstep predict` does, by kind of data: classes of images, text that continues a prompt, or the target of a
// table's rows. The training data need not be present: the checkpoint has what is needed from them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/sampling.hpp"
#include "run/train/loaded_model.hpp"

namespace lockstep::cli {

struct PredictOptions {
  std::string checkpoint = "auto";
  std::vector<std::string> files;  ///< images, or CSV files that name them; tables
  int top = 5;
  std::string prompt;  ///< "-": what stdin has
  bool has_prompt = false;
  std::int64_t tokens = 200;
  SamplingOptions sampling;
  std::vector<std::string> stop;  ///< text ends before the first of these
  bool cache = true;              ///< keys and values are kept from token to token
  std::uint64_t seed = 1;
  bool json = false, csv = false;
  bool logits = false;  ///< the model's own numbers instead of probabilities
  std::string to;       ///< a folder for predicted images
  bool print = true;    ///< false: on ranks that only compute
};

/// What a sample is said to be: probabilities, or values. Of a model with several outputs, those of all, one after the
/// other, each as its loss reads it (ensemble::meaning_of).
struct SamplePrediction {
  bool probabilities = false;
  std::vector<double> values;
};
/// Predicts every sample of a set, with one model or several.
using PredictSet = std::function<std::vector<SamplePrediction>(const DataSet&)>;

/// Predictions by all ranks, which have all of them afterwards. Collective.
[[nodiscard]] std::vector<SamplePrediction> predict_on_ranks(train::LoadedModel& model, const DataSet& set,
                                                             Communicator& communicator, bool logits);
/// Raw ones, sample after sample, as their losses read them, or as they are (`logits`).
[[nodiscard]] std::vector<SamplePrediction> read_predictions(const train::LoadedModel& model,
                                                             const std::vector<float>& raw, bool logits);

/// Which files of a folder are meant: JPEG and PNG by their names, or all that are not hidden.
enum class FilesOfFolder { images, all };
/// Files of the words: a folder is its files, also those in folders within, a pattern what it matches; both in byte
/// order. Throws Error(usage) for one that has none. `warn`: says on stderr which files of a folder are no images.
[[nodiscard]] std::vector<std::string> files_of_words(const std::vector<std::string>& words, FilesOfFolder kind,
                                                      bool warn);

/// A predicted number for people, to six digits of its difference from the offset that its target has.
[[nodiscard]] std::string number_text(double value, double offset);

/// A sample's predictions where a model has several outputs; `label`: what the sample is called under `key`.
void print_outputs(const train::LoadedModel& model, const PredictOptions& options, const std::string& key,
                   const std::vector<std::string>& label, const SamplePrediction& prediction);

/// `model`: says what samples and predictions are like; `predict` predicts them.
void predict_images(const train::LoadedModel& model, const PredictOptions& options, const PredictSet& predict,
                    Communicator& communicator);
/// Throws Error(usage) unless the model predicts images whose pixels are from 0 to 1.
void require_pictures(const train::LoadedModel& model);
/// Writes what is predicted of each sample as FOLDER/NAME.png, by the name of the sample's first file.
void write_pictures(const train::LoadedModel& model, const std::string& folder,
                    const std::vector<std::vector<std::string>>& files,
                    const std::vector<SamplePrediction>& predictions);
void predict_table(const train::LoadedModel& model, const PredictOptions& options, const PredictSet& predict);
void predict_text(train::LoadedModel& model, const PredictOptions& options);

}  // namespace lockstep::cli
