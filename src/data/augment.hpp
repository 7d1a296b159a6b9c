// Pipeline: what happens to a sample between the reader and the batch. Images go through the steps as bytes, and become
// normalised floats in one last pass; masks go through the same steps as the sample's first image, drawn alike; the
// columns of a table are normalised; everything else is copied.
//
// A step draws from a stream keyed by (seed, name and position of the step, epoch), the sample's id and the number of
// the image within the sample, and by nothing else.
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
  std::vector<AugmentOptions> steps;  ///< those of `prepare`; for training, followed by those of `augment`
  /// Images: per channel on the scale 0 ... 1, or one for all; tables: per element; empty: 0 and 1.
  std::vector<double> mean, stddev;
  std::uint64_t seed = 0;
};

/// Scratch memory of one thread that runs a pipeline.
struct PipelineScratch {
  Image image;
};

class Pipeline {
 public:
  /// Throws Error(configuration) for an unknown step, wrong attributes, or images that do not all get the same size.
  Pipeline(std::vector<Feature> features, const PipelineOptions& options, const AugmentRegistry& registry);

  const std::vector<Feature>& inputs() const { return inputs_; }
  /// The sample as the network sees it: images f32 [h, w, c], columns f32, everything else unchanged.
  const std::vector<Feature>& outputs() const { return outputs_; }

  /// Writes output i to outputs[i]. Throws Error(data) if an image's size differs from the one declared.
  void run(const Sample& sample, std::int64_t id, std::uint64_t epoch, PipelineScratch& scratch,
           std::span<std::byte* const> outputs) const;
  /// Runs only the steps: image number `index` of the sample, still as bytes, in scratch.image.
  void augment(const Tensor& image, std::size_t index, std::int64_t id, std::uint64_t epoch,
               PipelineScratch& scratch) const;

  // For sets that are kept on the device, the pipeline is split in two (augment_stored.cpp): what happens before
  // anything is drawn, done once (store), and what is drawn afterwards, if that only moves pixels (draw).

  /// y = x * factor + shift, for each number in a row; channels repeat.
  struct Scale {
    std::vector<float> factor, shift;
  };

  /// Why it cannot be split: "`rotate` computes pixels"; empty: it can, and the functions below may be called.
  std::string not_storable() const;
  /// The features that store() makes, by input: images as bytes, all of one size.
  const std::vector<Feature>& stored() const { return stored_; }
  void store(const Sample& sample, std::int64_t id, PipelineScratch& scratch,
             std::span<std::byte* const> outputs) const;
  /// The features that draw() makes: "id", i64 []; then, for each image input that has any, under its name: the
  /// PixelMoves of drawn_steps() steps, as i32 [steps, words of a PixelMove].
  std::vector<Feature> drawn() const;
  std::int64_t drawn_steps() const { return steps_.size() - fixed_steps_; }
  void draw(std::int64_t id, std::uint64_t epoch, std::span<std::byte* const> outputs) const;
  /// How output i, which must be an image, is normalised.
  const Scale& scale(std::size_t i) const { return scales_[i]; }

 private:
  struct Step {
    std::unique_ptr<AugmentStep> step;
    const MoveStep* moves;  ///< the same step; null if it computes pixels
    std::uint64_t key;
    std::string name;
  };
  void add_steps(const PipelineOptions& options, const AugmentRegistry& registry);
  static void require_masks_moved(const PipelineOptions& options, const AugmentRegistry& registry, const Feature& mask);
  Feature output_of(const Feature& input) const;
  std::size_t first_image() const;
  void write_mask(const Image& mask, std::size_t index, std::int64_t id, std::byte* output) const;
  [[nodiscard]] static Scale scale_for(const Feature& output, const PipelineOptions& options);
  void set_columns(const Feature& columns, const PipelineOptions& options);
  void augment(const Tensor& image, std::size_t index, std::int64_t id, std::uint64_t epoch, std::size_t steps,
               PipelineScratch& scratch) const;
  void write_image(const Image& image, std::size_t index, std::int64_t id, std::byte* output) const;
  /// For a row of a table: (value - mean) / standard deviation in double, rounded once. A missing value becomes 0, the
  /// mean of normalised numbers.
  void write_columns(const Tensor& row, std::size_t index, std::int64_t id, std::byte* output) const;
  [[noreturn]] void refuse_spec(const Tensor& tensor, std::size_t index, std::int64_t id) const;
  /// For an input that is neither.
  void copy(const Tensor& tensor, std::size_t index, std::int64_t id, std::byte* output) const;
  RandomStream random_of(const Step& step, std::size_t index, std::int64_t id, std::uint64_t epoch) const;
  Feature stored_as(const Feature& input) const;
  static void require_shape(const Image& image, const Feature& feature, std::int64_t id);

  std::vector<Feature> inputs_, stored_, outputs_;
  std::vector<Step> steps_;
  std::size_t fixed_steps_ = 0;        ///< number of steps before the first one that draws
  std::vector<Scale> scales_;          ///< by feature; for one row of the image
  std::vector<double> mean_, stddev_;  ///< of the elements of a table's columns
};

}  // namespace lockstep::data
