// contrastive, InfoNCE over the pairs of a micro-batch (van den Oord, Li and Vinyals,
// "Representation Learning with Contrastive Predictive Coding", 2018; in both
// directions, as Radford and others, "Learning Transferable Visual Models From
// Natural Language Supervision", 2021). A prediction [b, 2 d] is two vectors a
// sample. s_ij is the cosine between the first of sample i and the second of
// sample j, divided by the temperature. With each sample's pair held against
// those of the micro-batch that have another label,
//
//   loss_i = (log sum_j e^s_ij + log sum_j e^s_ji) / 2 - s_ii,   j = i, and
//   where the labels of i and j differ.
//
// Shared by the kernels of CPUs and GPUs: sizes, and where the tensors lie.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"
#include "lockstep/op.hpp"

namespace lockstep::ops {

/// Added to a vector's squared length.
inline constexpr float kSmallestLength = 1e-12F;

struct PairSizes {
  std::int64_t samples = 0, size = 0;  ///< size: of one of the two vectors
  float scale = 1;                     ///< 1 / temperature

  explicit PairSizes(const KernelRequest& request)
      : samples(request.inputs[0].shape[0]),
        size(request.inputs[0].shape[1] / 2),
        scale(1 / request.attributes->number("temperature")) {}
  /// Floats for everything of PairTensors.
  std::int64_t floats() const { return samples * samples + 6 * samples; }
};

/// What forward makes and backward reads. Of the lists of two, the first
/// `samples` are of the first vectors.
struct PairTensors {
  float* lengths;   ///< [2, samples]: 1 / length of a vector
  float* cosines;   ///< [samples, samples]: s
  float* maxima;    ///< [2, samples]: the largest s of a row, then of a column
  float* log_sums;  ///< [2, samples]: log of the sum of e^(s - maximum)

  /// In what is saved, or, if nothing is, in the workspace.
  PairTensors(std::span<void* const> saved, void* workspace, const PairSizes& sizes)
      : lengths(static_cast<float*>(workspace)),
        cosines(lengths + 6 * sizes.samples),
        maxima(lengths + 2 * sizes.samples),
        log_sums(lengths + 4 * sizes.samples) {
    if (saved.empty()) return;
    lengths = static_cast<float*>(saved[0]);
    cosines = static_cast<float*>(saved[1]);
    maxima = static_cast<float*>(saved[2]);
    log_sums = static_cast<float*>(saved[3]);
  }
};

/// Whether sample j is held against sample i.
[[nodiscard]] LOCKSTEP_HOST_DEVICE inline bool is_held_against(const std::int32_t* labels, std::int64_t i,
                                                               std::int64_t j) {
  return i == j || labels[i] != labels[j];
}

}  // namespace lockstep::ops
