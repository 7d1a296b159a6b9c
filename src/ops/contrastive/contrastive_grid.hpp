// contrastive on a Grid: a group for each vector, for each pair of vectors, or
// for each row and column of cosines.
#pragma once

#include <array>
#include <cmath>
#include <memory>

#include "core/divisor.hpp"
#include "device/float_math.hpp"
#include "device/gpu/grid.hpp"
#include "ops/contrastive/contrastive.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"

namespace lockstep::ops {

/// Where the vectors lie: vector i of [2, samples].
struct PairVectors {
  const float* x;
  std::int64_t samples, size;
  LOCKSTEP_HOST_DEVICE std::int64_t offset(std::int64_t i) const {
    return i < samples ? i * 2 * size : (i - samples) * 2 * size + size;
  }
  LOCKSTEP_HOST_DEVICE const float* at(std::int64_t i) const { return x + offset(i); }
};

struct PairLengthFunctor {
  PairVectors vectors;
  float* lengths;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t i) const {
    const float* from = vectors.at(i);
    const float squares = group.sum(vectors.size, [=](std::int64_t k) { return from[k] * from[k]; });
    float* to = lengths + i;
    group.once([=] { *to = 1.0F / std::sqrt(squares + kSmallestLength); });
  }
};

struct PairCosineFunctor {
  PairVectors vectors;
  Divisor samples;
  PairTensors to;
  float scale;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t pair) const {
    const std::int64_t i = pair / samples, j = pair % samples + vectors.samples;
    const float *left = vectors.at(i), *right = vectors.at(j);
    const float sum = group.sum(vectors.size, [=](std::int64_t k) { return left[k] * right[k]; });
    const float cosine = sum * (to.lengths[i] * to.lengths[j]) * scale;
    float* cosine_to = to.cosines + pair;
    group.once([=] { *cosine_to = cosine; });
  }
};

/// Row i of the cosines, or column i - samples.
struct PairSumFunctor {
  const std::int32_t* labels;
  std::int64_t samples;
  PairTensors to;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t i) const {
    const std::int64_t b = samples, sample = i < b ? i : i - b, step = i < b ? 1 : b;
    const float* first = i < b ? to.cosines + sample * b : to.cosines + sample;
    const std::int32_t* of = labels;
    const float largest = group.maximum(
        b, [=](std::int64_t j) { return is_held_against(of, sample, j) ? first[j * step] : -__builtin_inff(); });
    const float sum = group.sum(b, [=](std::int64_t j) {
      return is_held_against(of, sample, j) ? device::vector_exp(first[j * step] - largest) : 0.0F;
    });
    float *maximum_to = to.maxima + i, *log_sum_to = to.log_sums + i;
    group.once([=] {
      *maximum_to = largest;
      *log_sum_to = device::vector_log(sum);
    });
  }
};

struct PairLossFunctor {
  PairTensors from;
  std::int64_t samples;
  float *loss, *count;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const float own = from.cosines[i * samples + i];
    loss[i] = 0.5F * ((from.maxima[i] - own + from.log_sums[i]) +
                      (from.maxima[samples + i] - own + from.log_sums[samples + i]));
    count[i] = 1;
  }
};

/// The gradient by a cosine.
struct PairSlopeFunctor {
  const std::int32_t* labels;
  Divisor samples;
  PairTensors from;
  float scale;
  float* slopes;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t pair) const {
    const std::int64_t i = pair / samples, j = pair % samples;
    if (!is_held_against(labels, i, j)) {
      slopes[pair] = 0;
      return;
    }
    const std::int64_t b = samples.value();
    const float s = from.cosines[pair];
    const float row = device::vector_exp(s - from.maxima[i] - from.log_sums[i]);
    const float column = device::vector_exp(s - from.maxima[b + j] - from.log_sums[b + j]);
    slopes[pair] = (0.5F * (row + column) - (i == j ? 1.0F : 0.0F)) * scale;
  }
};

/// The gradient by a vector: first by the unit vector, then by itself.
struct PairGradientFunctor {
  PairVectors vectors;
  const float *slopes, *lengths;
  float* gradient;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, std::int64_t i) const {
    const PairVectors all = vectors;
    const std::int64_t b = all.samples;
    const float *by = i < b ? slopes + i * b : slopes + (i - b), *of = lengths, *x = all.at(i);
    const std::int64_t step = i < b ? 1 : b, first = i < b ? b : 0;
    float* dx = gradient + all.offset(i);
    group.each(all.size, [=](std::int64_t k) {
      float sum = 0;
      for (std::int64_t j = 0; j < b; ++j) sum += by[j * step] * of[first + j] * all.at(first + j)[k];
      dx[k] = sum;
    });
    const float length = lengths[i];
    const float along = group.sum(all.size, [=](std::int64_t k) { return dx[k] * x[k]; }) * length;
    group.each(all.size, [=](std::int64_t k) { dx[k] = (dx[k] - x[k] * length * along) * length; });
  }
};

template <class Grid>
class ContrastiveGrid final : public Kernel {
 public:
  explicit ContrastiveGrid(const KernelRequest& request) : sizes_(request) {}

  std::size_t workspace_bytes() const override { return sizes_.floats() * sizeof(float); }
  void forward(const ForwardCall& call) override {
    const std::int64_t b = sizes_.samples;
    const PairVectors vectors{input(call), b, sizes_.size};
    const PairTensors to(call.saved, call.workspace, sizes_);
    Grid::rows(stream_of(call), 2 * b, PairLengthFunctor{vectors, to.lengths});
    Grid::rows(stream_of(call), b * b, PairCosineFunctor{vectors, Divisor(b), to, sizes_.scale});
    Grid::rows(stream_of(call), 2 * b, PairSumFunctor{input<std::int32_t>(call, 1), b, to});
    Grid::each(stream_of(call), b, PairLossFunctor{to, b, output(call, 0), output(call, 1)});
  }
  void backward(const BackwardCall& call) override {
    if (input_gradient(call) == nullptr) return;
    const std::int64_t b = sizes_.samples;
    std::array<void*, 4> saved{};
    for (std::size_t i = 0; i < saved.size(); ++i) saved[i] = const_cast<void*>(call.saved[i]);
    const PairTensors from(saved, nullptr, sizes_);
    auto* const slopes = static_cast<float*>(call.workspace);
    Grid::each(stream_of(call), b * b,
               PairSlopeFunctor{input<std::int32_t>(call, 1), Divisor(b), from, sizes_.scale, slopes});
    Grid::rows(stream_of(call), 2 * b,
               PairGradientFunctor{{input(call), b, sizes_.size}, slopes, from.lengths, input_gradient(call)});
  }

 private:
  PairSizes sizes_;
};

template <class Grid>
std::unique_ptr<Kernel> make_contrastive_grid(const KernelRequest& request) {
  return make_for_float32(request, [&] { return std::make_unique<ContrastiveGrid<Grid>>(request); });
}

}  // namespace lockstep::ops
