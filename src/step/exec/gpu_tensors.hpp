// Tensors on a GPU: those elements of a TensorBlock on the host that this rank keeps, one tensor after the other, and
// copies to and from it. Weights of convolutions may be stored there with channels last; of such a weight a rank keeps
// all or nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/filter_sizes.hpp"
#include "core/round_up.hpp"
#include "device/gpu/gpu.hpp"
#include "device/gpu/gpu_memory.hpp"
#include "step/exec/memory_needs.hpp"
#include "step/exec/parameters.hpp"

namespace lockstep::exec {

/// By tensor: the elements that a rank keeps, ascending.
using KeptElements = std::vector<std::vector<Extent>>;
[[nodiscard]] KeptElements kept_elements(const TensorBlock& block);

class GpuTensors {
 public:
  /// Each run of a tensor's elements starts at a multiple of this many floats; the gaps are zero and unused.
  static constexpr std::int64_t kPart = 64;
  static constexpr std::int64_t parts_of(std::int64_t elements) { return divide_up(elements, kPart); }

  /// Elements of a tensor that follow one another, there and here.
  struct Run {
    std::size_t tensor = 0;
    Extent extent;           ///< of the tensor
    std::int64_t start = 0;  ///< offset of the first one, in floats
    std::int64_t elements() const { return extent.end - extent.begin; }
  };

  /// Zeros, in stream order. `channels_last`: by tensor (graph/weight_order.hpp); empty: none. The Gpu must outlive it;
  /// `like` need not.
  GpuTensors(device::Gpu& gpu, device::Gpu::Stream stream, const TensorBlock& like,
             const std::vector<bool>& channels_last = {});
  GpuTensors(const GpuTensors&) = delete;
  GpuTensors& operator=(const GpuTensors&) = delete;
  ~GpuTensors();

  /// Both return when everything is copied, in stream order after earlier work.
  void upload(const TensorBlock& block);
  void download(TensorBlock& block);

  /// By tensor, ascending.
  const std::vector<Run>& runs() const { return runs_; }
  /// Offset of tensor i, in floats; of its first element here.
  std::int64_t start(std::size_t i) const { return starts_[i]; }
  /// Offset of the element that has this place in tensor i; it must be here.
  std::int64_t offset(std::size_t i, std::int64_t place) const;
  /// Elements from start(i) to the end of its last run, including the gaps between its runs.
  std::int64_t extent(std::size_t i) const { return extents_[i]; }
  /// Element e of tensor i on the host is element order(i).place(e) here.
  const FilterSizes& order(std::size_t i) const { return orders_[i]; }
  float* data() const { return device_.as<float>(); }
  float* at(std::size_t i) const { return data() + starts_[i]; }
  /// Elements of all runs, including the gaps.
  std::int64_t elements() const { return elements_; }
  [[nodiscard]] static std::size_t bytes(const KeptElements& kept);

 private:
  std::size_t in_model(std::size_t tensor, std::size_t element) const { return orders_[tensor].of(element); }

  device::Gpu& gpu_;
  device::Gpu::Stream stream_;
  device::Gpu::Event copied_;
  std::vector<Run> runs_;
  std::vector<std::int64_t> starts_, extents_;  ///< by tensor
  std::vector<FilterSizes> orders_;
  std::int64_t elements_ = 0;
  device::GpuBlock device_;
};

/// Rounded copies of those parameters on a GPU that enter matrix multiplications in a low-precision type. They are made
/// when parameters come from the host, and updated together with the parameters. If a rank keeps some elements of them,
/// it has copies of these, with gaps where GpuTensors has gaps.
class LowPrecisionWeights {
 public:
  /// `types`: per parameter; f32: it has no copy. The Gpu must outlive it.
  LowPrecisionWeights(device::Gpu& gpu, const TensorBlock& parameters, const std::vector<DType>& types);

  /// Enqueues making the copy; does nothing if the parameter has none.
  void make(std::size_t parameter, device::Gpu::Stream stream, const float* from, std::int64_t elements) const;

  DType type(std::size_t parameter) const { return types_.at(parameter); }
  /// Null if it has none.
  std::byte* at(std::size_t parameter) const {
    return type(parameter) == DType::f32 ? nullptr : device_.get() + starts_.at(parameter);
  }
  [[nodiscard]] static std::size_t bytes(const KeptElements& parameters, const std::vector<DType>& types);

 private:
  device::Gpu& gpu_;
  std::vector<DType> types_;
  std::vector<std::size_t> starts_;  ///< in bytes
  device::GpuBlock device_;
};

/// The parameters and states that kernels read on a GPU.
class GpuParameters {
 public:
  /// Copies the host's values into the layout of the graph's device: its low-precision weights (graph/precision.hpp),
  /// the order of its weights (graph/weight_order.hpp). The Gpu must outlive it.
  GpuParameters(device::Gpu& gpu, const Graph& graph, const TensorBlock& parameters, const TensorBlock& states);
  /// Everything that uses it must be done.
  ~GpuParameters() = default;
  GpuParameters(const GpuParameters&) = delete;
  GpuParameters& operator=(const GpuParameters&) = delete;

  void upload(const TensorBlock& parameters, const TensorBlock& states);
  void download(TensorBlock& parameters, TensorBlock& states);

  [[nodiscard]] GpuTensors& parameters() { return parameters_; }
  [[nodiscard]] GpuTensors& states() { return states_; }
  /// Code that changes parameters must also change their copies.
  const LowPrecisionWeights& copies() const { return copies_; }
  /// The stream for work that changes them. Readers on other streams wait for changed().
  device::Gpu::Stream stream() const { return stream_; }
  device::Gpu::Event changed() const { return changed_; }
  void record_change() { gpu_.record(changed_, stream_); }
  [[nodiscard]] static std::vector<MemoryNeed> needs(const Graph& graph, const KeptElements& parameters,
                                                     const KeptElements& states);
  /// If the blocks have this rank's slices only: what gathers the others for kernels. Must outlive the kernels' use.
  void gather_with(ParameterGathers& gathers) { view_.gathers = &gathers; }
  /// For kernels that read them; shares ownership.
  [[nodiscard]] static std::shared_ptr<const ModelView> view(const std::shared_ptr<const GpuParameters>& of) {
    return {of, &of->view_};
  }

 private:
  device::Gpu& gpu_;
  device::Gpu::Stream stream_;
  device::Gpu::Event changed_;
  LowPrecisionWeights copies_;  // destroyed after the others, whose destructors wait for the stream
  GpuTensors parameters_, states_;
  ModelView view_;
};

}  // namespace lockstep::exec
