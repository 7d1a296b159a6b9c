// GpuDataSet: a data set on the rank's GPU, as the pipeline stores it: images as bytes, all of one size. For each
// micro-batch the host sends the ids of its samples and what was drawn for them (Pipeline::draw); one kernel per input
// of the model computes the rest on the GPU, with the host's bits.
#pragma once

#include <memory>
#include <vector>

#include "data/augment.hpp"
#include "data/input/gather_kernels.hpp"
#include "device/gpu/gpu_memory.hpp"
#include "lockstep/graph.hpp"
#include "step/exec/device.hpp"
#include "step/exec/worker_pool.hpp"

namespace lockstep::input {

class GpuDataSet final : public exec::InputFiller {
 public:
  static constexpr std::size_t kPieceBytes = std::size_t{16} << 20;

  /// Reads the whole set, using the pool, and copies what the graph's inputs need of it, piece by piece; returns when
  /// everything is on the GPU. pipeline.not_storable() must be empty. Throws Error(data) for a sample that cannot be
  /// read. The Gpu must outlive it.
  GpuDataSet(const DataSet& set, const data::Pipeline& pipeline, const Graph& graph, device::Gpu& gpu,
             std::shared_ptr<const GatherKernels> kernels, exec::WorkerPool& pool,
             std::size_t piece_bytes = kPieceBytes);

  /// Bytes of GPU memory.
  [[nodiscard]] static std::size_t bytes(const DataSet& set, const data::Pipeline& pipeline, const Graph& graph);
  /// Total bytes of parts(): what a micro-batch's inputs are made from (ids and drawn numbers), stored beside them on
  /// the GPU.
  [[nodiscard]] static std::size_t drawn_bytes(const data::Pipeline& pipeline, const Graph& graph);

  std::span<const std::size_t> parts() const override { return part_bytes_; }
  void fill(device::Gpu::Stream stream, std::span<const std::byte* const> parts,
            std::span<std::byte* const> inputs) const override;

 private:
  /// A feature that is an input of the model.
  struct Input {
    std::size_t feature = 0;
    std::size_t sample_bytes = 0;
    std::int64_t elements = 0;  ///< per micro-batch: pixels or, if it is no image, bytes
    device::GpuBlock samples, scale;
    std::size_t moves = 0;          ///< index of its part; 0: nothing is drawn for it
    GatherImagesFunctor functor{};  ///< images: the fields that are the same for all micro-batches
  };
  Input input_of(const data::Pipeline& pipeline, std::size_t feature, std::int64_t micro_batch_samples) const;
  void upload_scale(const data::Pipeline& pipeline, Input& input);
  void upload(const DataSet& set, const data::Pipeline& pipeline, exec::WorkerPool& pool);
  /// Returns when the bytes are on the GPU.
  void copy_in(std::byte* device, std::span<const std::byte> bytes);

  device::Gpu& gpu_;
  std::shared_ptr<const GatherKernels> kernels_;
  device::Gpu::Stream stream_;
  device::Gpu::Event copied_;
  std::size_t piece_bytes_;
  device::PinnedBlock pinned_;           ///< staging memory during the copy
  std::vector<std::size_t> part_bytes_;  ///< per micro-batch
  std::vector<Input> inputs_;
};

}  // namespace lockstep::input
