// InputFiller: makes a shard's inputs where they are needed, on a GPU, from fewer bytes than they have.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "device/stream.hpp"
#include "lockstep/graph.hpp"

namespace lockstep::exec {

/// Its parts take the place of the inputs in ShardInputs and on the way to the GPU. Const members are called by several
/// threads at once.
class InputFiller {
 public:
  InputFiller() = default;
  InputFiller(const InputFiller&) = delete;
  InputFiller& operator=(const InputFiller&) = delete;
  virtual ~InputFiller() = default;
  /// Bytes of each part, the same for every shard.
  [[nodiscard]] virtual std::span<const std::size_t> parts() const = 0;
  /// Launches kernels that overwrite `inputs`, one per Graph::inputs. Both are on the GPU.
  virtual void fill(device::Stream stream, std::span<const std::byte* const> parts,
                    std::span<std::byte* const> inputs) const = 0;
};

/// Bytes of each of ShardInputs::tensors. `filler`: null where the inputs are copied.
[[nodiscard]] std::vector<std::size_t> tensor_bytes(const Graph& graph, const InputFiller* filler);

}  // namespace lockstep::exec
