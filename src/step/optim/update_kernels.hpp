// The functors of the kernels of an update on a GPU, and the class that launches them. The model is on the GPU as
// exec::GpuTensors, so each kernel processes all tensors at once, 64 floats of one tensor at a time (a part), or what
// the rank keeps of them: gradients and the optimizer's states have the same layout, parameters may have another. The
// formulas are the CPU's (cpu_updater.cpp, elementwise.hpp), element for element, and so are the bits.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <string>

#include "core/filter_sizes.hpp"
#include "core/host_device.hpp"
#include "core/low_precision.hpp"
#include "device/float_math.hpp"
#include "device/gpu/grid.hpp"
#include "device/gpu/pack.hpp"
#include "device/row_blocks.hpp"
#include "lockstep/optimizer.hpp"
#include "step/exec/gpu_tensors.hpp"
#include "step/optim/elementwise.hpp"

namespace lockstep::optim {

inline constexpr std::int32_t kNoGroup = -1;

/// A part of the gradients' block.
struct UpdatePart {
  float* parameter = nullptr;  ///< address of its first element
  std::int64_t use = 0;        ///< index of its first one in the list of uses
  std::int32_t uses = 0;       ///< 0: frozen, perhaps for a while
  std::int32_t elements = 0;   ///< of its kPart floats; the rest is padding, or frozen for good
  bool decay = false;
  std::int32_t group = 0;            ///< see ParameterGroups; kNoGroup: it is not updated element by element
  std::int32_t tensor = 0;           ///< its parameter's number
  DType low_precision = DType::f32;  ///< type of the low-precision copy; f32: none
  std::uint16_t* copy = nullptr;     ///< address of its first element
};

/// A part of the states' block: running statistics.
struct StatePart {
  const float* sum = nullptr;  ///< the sum of the micro-batches' values
  std::int32_t elements = 0;   ///< 0: it is not updated
  float momentum = 0;
};

/// What the host reads after an update.
struct Verdict {
  double norm = 0;             ///< of the gradient, before clipping
  float factor = 1;            ///< factor of the gradients
  std::uint32_t overflow = 0;  ///< not 0: some gradient is not finite, and nothing is changed
};

LOCKSTEP_HOST_DEVICE inline bool is_set(const std::uint32_t* flag) {
  return flag != nullptr && *flag != 0;
}

/// Threads of several blocks may set a flag in one launch: with plain stores this would be a data race.
LOCKSTEP_HOST_DEVICE inline void set_flag(std::uint32_t* flag) {
#ifdef __CUDA_ARCH__
  atomicOr(flag, 1U);
#else
  std::atomic_ref(*flag).store(1, std::memory_order_relaxed);
#endif
}

/// Kernels move neighbouring floats of a part at once: where tensors and their sums begin is a multiple of 16 bytes.
inline constexpr int kPack = device::kPacked<float>;
inline constexpr std::int64_t kPacksOfPart = exec::GpuTensors::kPart / kPack;
using FloatPack = device::Pack<float, kPack>;

/// gradient[i] = the sum over the uses of its parameter, in order, divided once. Threads that find a non-finite
/// gradient set `overflow`.
struct GatherPartsFunctor {
  const float* const* uses;  ///< by use: the sum of a part
  const UpdatePart* parts;
  float* gradient;
  float divisor;
  std::uint32_t* overflow;  ///< null: not checked
  /// Of pack i. Behind a tensor's last element sums are of no meaning, and nothing is written.
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const UpdatePart& part = parts[i / kPacksOfPart];
    const std::int64_t at = i % kPacksOfPart * kPack, left = part.elements - at;
    if (left <= 0 || part.uses == 0) return;
    if (left < kPack) {
      for (std::int64_t k = at; k < part.elements; ++k) store(i * kPack + k - at, sum_of(part, k));
      return;
    }
    FloatPack sum = device::read_pack<kPack>(uses[part.use] + at);
    for (std::int64_t use = part.use + 1; use < part.use + part.uses; ++use) {
      const FloatPack more = device::read_pack<kPack>(uses[use] + at);
      LOCKSTEP_UNROLL
      for (int k = 0; k < kPack; ++k) sum.at[k] += more.at[k];
    }
    bool finite = true;
    LOCKSTEP_UNROLL
    for (float& one : sum.at) {
      one /= divisor;
      finite = finite && device::is_finite(one) != 0;
    }
    device::write_pack(gradient + i * kPack, sum);
    if (overflow != nullptr && !finite) set_flag(overflow);
  }

 private:
  LOCKSTEP_HOST_DEVICE float sum_of(const UpdatePart& part, std::int64_t at) const {
    float sum = uses[part.use][at];
    for (std::int64_t use = part.use + 1; use < part.use + part.uses; ++use) sum += uses[use][at];
    return sum;
  }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float sum) const {
    gradient[i] = sum / divisor;
    if (overflow != nullptr && device::is_finite(gradient[i]) == 0) set_flag(overflow);
  }
};

/// A chunk of a tensor, whose elements are contiguous in the model's order; the norm adds the chunks' squares as rows
/// are added (device/row_blocks.hpp).
struct NormChunk {
  std::int64_t tensor = 0;  ///< offset of the tensor
  std::int64_t first = 0;   ///< index in the tensor
  std::int64_t elements = 0;
  FilterSizes order;  ///< see GpuTensors
  LOCKSTEP_HOST_DEVICE std::int64_t place(std::int64_t i) const {
    return tensor + (order.orders_differ() ? order.place(first + i) : first + i);
  }
};

/// squares[c] = the sum of squares of chunk c: in eight lanes, which are then added in order.
struct SquaresFunctor {
  static constexpr int kLanes = 8;
  const float* gradient;
  const NormChunk* chunks;
  double* lanes;  ///< [chunks, kLanes]
  double* squares;
  template <class Group>
  LOCKSTEP_HOST_DEVICE void operator()(const Group& group, std::int64_t c) const {
    const NormChunk& chunk = chunks[c];
    double* mine = lanes + c * kLanes;
    // Most tensors lie as in the model: their addresses are found without a branch.
    const float* const together = chunk.order.orders_differ() ? nullptr : gradient + chunk.place(0);
    group.each(kLanes, [&](std::int64_t lane) {
      mine[lane] = together != nullptr
                       ? sum_of_lane(lane, chunk.elements, [=](std::int64_t i) { return together[i]; })
                       : sum_of_lane(lane, chunk.elements, [&](std::int64_t i) { return gradient[chunk.place(i)]; });
    });
    group.barrier();
    group.once([&] {
      double sum = 0;
      for (int lane = 0; lane < kLanes; ++lane) sum += mine[lane];
      squares[c] = sum;
    });
  }

  /// A lane reads several elements before it adds the first.
  template <class Value>
  static LOCKSTEP_HOST_DEVICE double sum_of_lane(std::int64_t lane, std::int64_t n, const Value& value) {
    constexpr std::int64_t kTermsAtOnce = 16;
    double sum = 0;
    std::int64_t i = lane;
    for (; i + (kTermsAtOnce - 1) * kLanes < n; i += kTermsAtOnce * kLanes) {
      float values[kTermsAtOnce];
      LOCKSTEP_UNROLL
      for (std::int64_t k = 0; k < kTermsAtOnce; ++k) values[k] = value(i + k * kLanes);
      LOCKSTEP_UNROLL
      for (std::int64_t k = 0; k < kTermsAtOnce; ++k) sum += static_cast<double>(values[k]) * values[k];
    }
    for (; i < n; i += kLanes) {
      const auto one = static_cast<double>(value(i));
      sum += one * one;
    }
    return sum;
  }
};

using SumSquaresFunctor = device::SumBlocksFunctor<device::RowElements<double>, double>;

/// The norm, and the factor of the gradients. One thread.
struct ClipFunctor {
  const double* square;
  double max_norm;
  Verdict* verdict;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t /*i*/) const {
    verdict->norm = std::sqrt(*square);
    const double factor = max_norm / (verdict->norm + 1e-6);
    verdict->factor = factor < 1.0 ? factor : 1.0;
  }
};

/// The operands of every optimizer's kernel.
struct UpdateOperands {
  const UpdatePart* parts;
  float* gradient;
  float* states[kMaxOptimizerStates];
  std::int32_t group;  ///< the one whose parameters are updated
  std::int32_t state_count;
  const Verdict* clip;            ///< null: gradients are not clipped, or are clipped already
  const std::uint32_t* overflow;  ///< null: no update is skipped
  const float* trust;             ///< by parameter: see TrustRatio; null if the optimizer has none

  /// Whether parameters of the group are updated.
  LOCKSTEP_HOST_DEVICE bool takes(std::int32_t of_group) const { return of_group == group && !is_set(overflow); }
  /// The factor of the gradients; 1 and more: they stay.
  LOCKSTEP_HOST_DEVICE float factor() const { return clip == nullptr ? 1 : clip->factor; }
  LOCKSTEP_HOST_DEVICE static std::uint16_t rounded(DType low_precision, float value) {
    return low_precision == DType::f16 ? Float16::from_float(value) : Bfloat16::from_float(value);
  }
};

template <class Formula, std::size_t... kState>
struct UpdateFunctor {
  UpdateOperands of;
  Formula decayed, plain;
  /// Of pack i; of a tensor's last pack perhaps only the first elements.
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const UpdatePart part = of.parts[i / kPacksOfPart];
    const std::int64_t at = i % kPacksOfPart * kPack, left = part.elements - at;
    if (left <= 0 || part.uses == 0 || !of.takes(part.group)) return;
    const float factor = of.factor();
    Formula formula = part.decay ? decayed : plain;
    if constexpr (HasTrust<Formula>) formula.trust = of.trust[part.tensor];
    if (left >= kPack) return update(formula, factor, part, at, i * kPack);
    for (std::int64_t k = 0; k < left; ++k) update_one(formula, factor, part, at + k, i * kPack + k);
  }

 private:
  /// Elements at ... of the part, i ... of all.
  LOCKSTEP_HOST_DEVICE void update(const Formula& formula, float factor, const UpdatePart& part, std::int64_t at,
                                   std::int64_t i) const {
    FloatPack parameter = device::read_pack<kPack>(part.parameter + at);
    FloatPack gradient = device::read_pack<kPack>(of.gradient + i);
    [[maybe_unused]] FloatPack states[sizeof...(kState) + 1] = {device::read_pack<kPack>(of.states[kState] + i)...};
    if (factor < 1) {
      LOCKSTEP_UNROLL
      for (float& one : gradient.at) one *= factor;
      device::write_pack(of.gradient + i, gradient);
    }
    LOCKSTEP_UNROLL
    for (int k = 0; k < kPack; ++k) formula(parameter.at[k], gradient.at[k], states[kState].at[k]...);
    device::write_pack(part.parameter + at, parameter);
    (device::write_pack(of.states[kState] + i, states[kState]), ...);
    if (part.low_precision == DType::f32) return;
    device::Pack<std::uint16_t, kPack> copy{};
    LOCKSTEP_UNROLL
    for (int k = 0; k < kPack; ++k) copy.at[k] = UpdateOperands::rounded(part.low_precision, parameter.at[k]);
    device::write_pack(part.copy + at, copy);
  }
  LOCKSTEP_HOST_DEVICE void update_one(const Formula& formula, float factor, const UpdatePart& part, std::int64_t at,
                                       std::int64_t i) const {
    if (factor < 1) of.gradient[i] *= factor;
    formula(part.parameter[at], of.gradient[i], of.states[kState][i]...);
    if (part.low_precision != DType::f32)
      part.copy[at] = UpdateOperands::rounded(part.low_precision, part.parameter[at]);
  }
};

/// average = average + weight * (parameter - average). The average has the gradients' layout.
struct AverageFunctor {
  const UpdatePart* parts;
  float* average;
  float weight;
  const std::uint32_t* overflow;  ///< null: no update is skipped
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    if (is_set(overflow)) return;
    const UpdatePart& part = parts[i / exec::GpuTensors::kPart];
    const std::int64_t at = i % exec::GpuTensors::kPart;
    if (at < part.elements) average[i] = averaged(average[i], part.parameter[at], weight);
  }
};

/// Exchanges parameters with their average, and renews the copies.
struct SwapFunctor {
  const UpdatePart* parts;
  float* average;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const UpdatePart& part = parts[i / exec::GpuTensors::kPart];
    const std::int64_t at = i % exec::GpuTensors::kPart;
    if (at >= part.elements) return;
    const float parameter = part.parameter[at];
    part.parameter[at] = average[i];
    average[i] = parameter;
    if (part.low_precision != DType::f32)
      part.copy[at] = UpdateOperands::rounded(part.low_precision, part.parameter[at]);
  }
};

/// Updates a running statistic from the micro-batches' sum.
struct BlendFunctor {
  float* state;
  const StatePart* parts;
  float micro_batches;
  const std::uint32_t* overflow;  ///< null: no update is skipped
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    if (is_set(overflow)) return;
    const StatePart& part = parts[i / exec::GpuTensors::kPart];
    const std::int64_t at = i % exec::GpuTensors::kPart;
    if (at >= part.elements) return;
    state[i] = (1.0F - part.momentum) * state[i] + part.momentum * (part.sum[at] / micro_batches);
  }
};

struct MeasureOperands;
struct TrustOperands;
struct MatrixOperands;
struct MatrixOnGpu;
struct Adafactor;
struct CopyGradientFunctor;
struct TileSquaresFunctor;
struct MatrixMomentsFunctor;
struct RowMeanFunctor;
struct StepSquaresFunctor;
struct AdafactorUpdateFunctor;

/// Launches them on a stream: on GPUs through the CUDA module, in tests over the whole grid on the CPU.
class UpdateKernels {
 public:
  UpdateKernels() = default;
  UpdateKernels(const UpdateKernels&) = delete;
  UpdateKernels& operator=(const UpdateKernels&) = delete;
  virtual ~UpdateKernels() = default;

  /// For n elements, whole parts.
  virtual void launch(GpuStream* stream, std::int64_t n, const GatherPartsFunctor& functor) const = 0;
  /// functor(group, c) for c = 0 ... chunks - 1
  virtual void launch(GpuStream* stream, std::int64_t chunks, const SquaresFunctor& functor) const = 0;
  virtual void launch(GpuStream* stream, std::int64_t sums, const SumSquaresFunctor& functor) const = 0;
  virtual void launch(GpuStream* stream, std::int64_t one, const ClipFunctor& functor) const = 0;
  /// functor(i) for i = 0 ... n - 1
  virtual void launch(GpuStream* stream, std::int64_t n, const BlendFunctor& functor) const = 0;
  virtual void launch(GpuStream* stream, std::int64_t n, const AverageFunctor& functor) const = 0;
  virtual void launch(GpuStream* stream, std::int64_t n, const SwapFunctor& functor) const = 0;
  /// Launches the UpdateFunctor of the formula of the optimizer with this name (is_on_gpus()), for n elements, whole
  /// parts.
  virtual void launch_optimizer(GpuStream* stream, std::int64_t n, const UpdateOperands& of, const std::string& name,
                                const Attributes& settings, const UpdateStep& step) const = 0;
  // For an optimizer with a trust ratio: the kernels of trust_kernels.hpp.
  virtual void launch_measure(GpuStream* stream, std::int64_t chunks, const MeasureOperands& of,
                              const std::string& name, const Attributes& settings, const UpdateStep& step) const = 0;
  virtual void launch_trust(GpuStream* stream, std::int64_t tensors, const TrustOperands& of, const std::string& name,
                            const Attributes& settings, const UpdateStep& step) const = 0;
  // For an optimizer with steps of whole matrices: the kernels of matrix_kernels.hpp, and between them, by matrix,
  // those that make its step (newton_schulz_grid.hpp).
  virtual void launch_directions(GpuStream* stream, std::int64_t chunks, const MatrixOperands& of,
                                 const std::string& name, const Attributes& settings, const UpdateStep& step) const = 0;
  virtual void launch_transform(GpuStream* stream, const MatrixOnGpu& of, const std::string& name,
                                const Attributes& settings) const = 0;
  virtual void launch_matrix_steps(GpuStream* stream, std::int64_t chunks, const MatrixOperands& of,
                                   const std::string& name, const Attributes& settings,
                                   const UpdateStep& step) const = 0;
  // For adafactor: the kernels of adafactor_kernels.hpp. functor(group, i) for i = 0 ... n - 1
  virtual void launch(GpuStream* stream, std::int64_t chunks, const CopyGradientFunctor& functor) const = 0;
  virtual void launch(GpuStream* stream, std::int64_t tiles, const TileSquaresFunctor& functor) const = 0;
  virtual void launch(GpuStream* stream, std::int64_t strips, const MatrixMomentsFunctor& functor) const = 0;
  virtual void launch(GpuStream* stream, std::int64_t matrices, const RowMeanFunctor& functor) const = 0;
  virtual void launch(GpuStream* stream, std::int64_t chunks, const StepSquaresFunctor& functor) const = 0;
  virtual void launch_trust(GpuStream* stream, std::int64_t tensors, const TrustOperands& of,
                            const Adafactor& formula) const = 0;
  virtual void launch(GpuStream* stream, std::int64_t chunks, const AdafactorUpdateFunctor& functor) const = 0;
};

/// The module's function that makes them: UpdateKernels*().
inline constexpr const char* kModuleMakeUpdateKernels = "lockstep_cuda_make_update_kernels";

}  // namespace lockstep::optim
