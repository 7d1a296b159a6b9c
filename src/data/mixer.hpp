// Mixes the training samples of a micro-batch with each other, images and labels: mixup (Zhang and others, "mixup:
// Beyond Empirical Risk Minimization", ICLR 2018) and cutmix (Yun and others, "CutMix: Regularization Strategy to Train
// Strong Classifiers with Localizable Features", ICCV 2019).
//
// Sample i of a micro-batch of n is mixed with sample n - 1 - i; micro-batches are shuffled anew in each epoch, and so
// are partners. Whether, how and how much depends on the sample and the epoch: each of a pair has draws of its own. The
// sample in the middle of an odd number has no partner, and stays.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/data_set.hpp"
#include "lockstep/job.hpp"
#include "lockstep/random.hpp"

namespace lockstep::data {

class Mixer {
 public:
  /// `features`: of a sample as the network sees it, an image [h, w, c] and its label as probabilities [classes], f32.
  /// Throws Error(configuration) for others, and for micro-batches of one sample.
  Mixer(const MixOptions& options, std::uint64_t seed, const std::vector<Feature>& features,
        std::int64_t micro_batch_samples);

  /// `tensors`: those of a micro-batch, by feature; `ids`: of its samples. `scratch` keeps its memory for the next
  /// call.
  void mix_micro_batch(std::vector<NamedTensor>& tensors, std::span<const std::int64_t> ids, std::uint64_t epoch,
                       std::vector<float>& scratch) const;

 private:
  /// The part of a sample that stays.
  struct Draw {
    float keeps = 1;
    bool cut = false;                                       ///< rows top ... bottom and columns left ... right are the
    std::int64_t top = 0, bottom = 0, left = 0, right = 0;  ///< partner's; else all pixels are mixed
  };
  Draw draw(std::int64_t id, std::uint64_t epoch) const;
  void blend(const Draw& draw, float* image, const float* partner) const;

  MixOptions options_;
  std::uint64_t key_;
  std::size_t image_ = 0, label_ = 0;  ///< features
  std::int64_t height_ = 0, width_ = 0, channels_ = 0, classes_ = 0;
};

/// From Beta(alpha, alpha), after Joehnk (1964), with the machine's own arithmetic only.
[[nodiscard]] double symmetric_beta(double alpha, RandomStream& random);

}  // namespace lockstep::data
