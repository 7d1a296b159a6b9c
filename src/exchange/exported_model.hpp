// A trained model as the exporters get it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/graph.hpp"
#include "lockstep/job.hpp"

namespace lockstep::exchange {

struct ExportedModel {
  const Graph* graph = nullptr;                           ///< the prediction, in fp32: no loss, no metrics
  std::function<std::span<const float>(ValueId)> values;  ///< of a parameter or state
  std::string job, source;                                ///< the job's name; which checkpoint it is from
  std::vector<std::string> labels;                        ///< names of classes; empty: none
  std::vector<std::string> tokens;                        ///< the text of each token; empty: none
  std::vector<double> mean,
      stddev;  ///< of images, by channel, on the scale 0...1; empty: pixels are only divided by 255
  std::vector<AugmentOptions> prepare;  ///< steps that a sample goes through first
};

/// A file to write: its name, within the target where that is a folder, and its bytes.
struct ExportedFile {
  std::string name, bytes;
};

}  // namespace lockstep::exchange
