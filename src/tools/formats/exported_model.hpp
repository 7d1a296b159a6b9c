// A trained model as the exporters get it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lockstep/data_set.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/job.hpp"

namespace lockstep::formats {

/// A feature that the graph reads, as a sample has it after the steps of `prepare`: images are u8, numbers of a table
/// may be NaN.
struct ExportedInput {
  Feature feature;
  std::vector<float> factor, shift;  ///< of an image, by channel: layers get value * factor + shift
};

/// What the model predicts for one of its losses.
struct ExportedOutput {
  std::string name;  ///< the loss's; empty if it is the only one
  Shape shape;       ///< of one sample
  std::int64_t first = 0;
  std::string activation;  ///< softmax or sigmoid makes probabilities of the numbers; empty: they are the answer
  std::vector<std::string> names;  ///< of classes, or of the numbers; empty: none
};

struct ExportedModel {
  const Graph* graph = nullptr;                           ///< the prediction, in fp32: no loss, no metrics
  std::function<std::span<const float>(ValueId)> values;  ///< of a parameter or state
  std::string job, source;                                ///< the job's name; which checkpoint it is from
  std::vector<std::string> labels;                        ///< names of classes; empty: none
  std::vector<std::string> tokens;                        ///< the text of each token; empty: none
  std::string tokenizer;                                  ///< the text of a tokenizer.json; empty: none
  std::vector<double> mean,
      stddev;  ///< of images by channel, on the scale 0...1, or of a table by element of its columns, where NaN
               ///< then becomes 0; empty: pixels are only divided by 255
  std::vector<AugmentOptions> prepare;  ///< steps that a sample goes through first
  std::vector<ExportedInput> inputs;    ///< by input of the graph
  std::vector<ExportedOutput> outputs;
  std::vector<Column> columns;   ///< of a table
  std::int64_t window_rows = 0;  ///< of a time series: how many rows a sample has; 0: one
  /// By column: how else files may write its categories, and which they are: {"2.0", "2"}.
  std::vector<std::map<std::string, std::string>> spellings = {};
  std::vector<std::string> missing;  ///< what a table's file may have for a missing value
  bool ignores_unknown = false;      ///< a category that training lacks is none of the others, and no error
  std::string data;                  ///< what the model knows of its data, as JSON; empty: nothing
};

/// `data` with all else that an answer from a raw sample needs: `prepare` and `missing`, the names of the `inputs`, and
/// `outputs` with shape, activation and names of each. JSON.
[[nodiscard]] std::string exported_facts(const ExportedModel& model);

/// What is not UTF-8 becomes U+FFFD.
[[nodiscard]] std::string as_utf8(const std::string& text);

/// A file to write: its name, within the target where that is a folder, and its bytes.
struct ExportedFile {
  std::string name, bytes;
};

}  // namespace lockstep::formats
