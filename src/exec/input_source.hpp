// Where a shard's inputs come from. exec knows no data set; train binds a loader to this, and what it keeps on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/gpu/gpu.hpp"
#include "lockstep/graph.hpp"

namespace lockstep::exec {

struct ShardInputs {
  std::vector<const void*> tensors;  ///< one per Graph::inputs, in that order; or per InputFiller::parts()
  std::int64_t valid = 0;            ///< samples that count; the rest is padding
};

class InputSource {
 public:
  virtual ~InputSource() = default;
  /// Overwrites `inputs` when the shard's are there; blocks until then. Called by several workers, each with its own
  /// `inputs`. The tensors are valid until release().
  virtual void get(std::uint64_t step, int shard, ShardInputs& inputs) = 0;
  virtual void release(std::uint64_t step, int shard) = 0;
};

/// Makes inputs where they are needed, on a GPU, from fewer bytes than they are. Its parts take the place of the inputs
/// in ShardInputs and on the way there. Const members are called by several threads at once.
class InputFiller {
 public:
  InputFiller() = default;
  InputFiller(const InputFiller&) = delete;
  InputFiller& operator=(const InputFiller&) = delete;
  virtual ~InputFiller() = default;
  /// Bytes of each part, the same for every shard.
  [[nodiscard]] virtual std::span<const std::size_t> parts() const = 0;
  /// Puts kernels on the stream that overwrite `inputs`, one per Graph::inputs. Both lie on the GPU.
  virtual void fill(device::Gpu::Stream stream, std::span<const std::byte* const> parts,
                    std::span<std::byte* const> inputs) const = 0;
};

/// Bytes of each of ShardInputs::tensors. `filler`: null where there is none.
[[nodiscard]] std::vector<std::size_t> tensor_bytes(const Graph& graph, const InputFiller* filler);

}  // namespace lockstep::exec
