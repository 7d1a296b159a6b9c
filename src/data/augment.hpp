// Pipeline: what happens to a sample between the reader and the batch. Images run through the steps, as bytes,
// and become normalised floats in one last pass; everything else is copied.
//
// A step draws from a stream keyed by (seed, name and position of the step, epoch), the sample's id and the
// number of the image within the sample: of nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/augment.hpp"
#include "lockstep/data_set.hpp"
#include "lockstep/job.hpp"

namespace lockstep::data {

struct PipelineOptions {
  std::vector<AugmentOptions> steps;    ///< `prepare`, then, for training, `augment`
  std::vector<double> mean, deviation;  ///< per channel on the scale 0 ... 1, or one for all; empty: 0 and 1
  std::uint64_t seed = 0;
};

/// What one thread needs while it runs a pipeline.
struct PipelineScratch {
  Image image;
};

class Pipeline {
 public:
  /// Throws Error(configuration) for an unknown step, wrong attributes, or images that do not end with one size.
  Pipeline(std::vector<Feature> features, const PipelineOptions& options, const AugmentRegistry& registry);

  [[nodiscard]] const std::vector<Feature>& inputs() const { return inputs_; }
  /// The sample as the network sees it: images f32 [h, w, c], all else as it came.
  [[nodiscard]] const std::vector<Feature>& outputs() const { return outputs_; }

  /// Writes output i to outputs[i]. Throws Error(data) if an image's size is not what was announced.
  void run(const Sample& sample, std::int64_t id, std::uint64_t epoch, PipelineScratch& scratch,
           std::span<std::byte* const> outputs) const;
  /// The steps alone: image number `index` of the sample, still as bytes, in scratch.image.
  void augment(const Tensor& image, std::size_t index, std::int64_t id, std::uint64_t epoch,
               PipelineScratch& scratch) const;

 private:
  struct Step {
    std::unique_ptr<AugmentStep> step;
    std::uint64_t key;
  };
  struct Scale {  ///< y = x * factor + shift, per channel
    std::vector<float> factor, shift;
  };
  void add_steps(const PipelineOptions& options, const AugmentRegistry& registry);
  [[nodiscard]] Feature output_of(const Feature& input) const;
  [[nodiscard]] static Scale scale_for(const Feature& output, const PipelineOptions& options);
  void write_image(const Image& image, std::size_t index, std::int64_t id, std::byte* output) const;

  std::vector<Feature> inputs_, outputs_;
  std::vector<Step> steps_;
  std::vector<Scale> scales_;  ///< by feature; for one row of the image
};

}  // namespace lockstep::data
