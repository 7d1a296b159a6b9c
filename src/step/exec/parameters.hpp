// The model's parameters and states: fp32, one block each. By default every rank has all of a block; if ranks divide it
// among them, each keeps some elements of its tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/stream.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep::exec {

/// Elements [begin, end) of a tensor.
struct Extent {
  std::int64_t begin = 0, end = 0;
  bool operator==(const Extent&) const = default;
};

/// Elements of a tensor, and the rank that owns them.
struct OwnedExtent {
  Extent extent;
  int owner = 0;
};

/// Named fp32 tensors in one allocation, each 64-byte aligned, in the order given.
class TensorBlock {
 public:
  TensorBlock() = default;
  /// All zero.
  TensorBlock(const Graph& graph, const std::vector<ValueId>& ids);
  /// A block of which this rank keeps the elements `own`: by tensor, ascending. It uses `memory` (of bytes_of()) with
  /// the values it has; if that is null, zeros in memory whose pages are allocated on first write.
  TensorBlock(const Graph& graph, const std::vector<ValueId>& ids, std::vector<std::vector<Extent>> own,
              std::shared_ptr<std::byte> memory = {});
  /// The same with other shapes than the graph's.
  TensorBlock(const Graph& graph, const std::vector<ValueId>& ids, const std::vector<Shape>& shapes,
              std::vector<std::vector<Extent>> own);
  TensorBlock(TensorBlock&&) = default;
  TensorBlock& operator=(TensorBlock&&) = default;
  TensorBlock(const TensorBlock&) = delete;
  TensorBlock& operator=(const TensorBlock&) = delete;
  ~TensorBlock() = default;

  /// Offsets of such tensors, in elements, and the end of the last one.
  [[nodiscard]] static std::vector<std::int64_t> offsets_of(const Graph& graph, const std::vector<ValueId>& ids);
  /// Bytes that they occupy.
  [[nodiscard]] static std::size_t bytes_of(const Graph& graph, const std::vector<ValueId>& ids) {
    return offsets_of(graph, ids).back() * sizeof(float);
  }

  std::size_t size() const { return entries_.size(); }
  const std::string& name(std::size_t i) const { return entries_[i].name; }
  const Shape& shape(std::size_t i) const { return entries_[i].shape; }
  std::span<float> at(std::size_t i) const {
    return {reinterpret_cast<float*>(memory_.get()) + entries_[i].offset,
            static_cast<std::size_t>(entries_[i].elements)};
  }
  std::span<float> at(std::size_t i, const Extent& extent) const {
    return at(i).subspan(extent.begin, extent.end - extent.begin);
  }
  /// The elements that this rank keeps; it must not write others.
  std::vector<Extent> own(std::size_t i) const;
  std::int64_t elements() const;  ///< of all tensors, without padding

 private:
  struct Entry {
    std::string name;
    Shape shape;
    std::int64_t offset, elements;
  };
  void lay_out(const Graph& graph, const std::vector<ValueId>& ids);

  std::vector<Entry> entries_;
  std::vector<std::vector<Extent>> own_;  ///< by tensor; empty: all of each
  std::shared_ptr<std::byte> memory_;
};

struct FetchedParameters;
class ParameterGathers;

/// The addresses at which kernels read a model.
struct ModelView {
  std::vector<const float*> parameters, states;  ///< per Graph::parameters, Graph::states
  std::vector<const void*> low_precision;        ///< on a GPU, per parameter: its copy (graph/precision.hpp), or null
  std::vector<bool> channels_last;               ///< per parameter: its layout (graph/weight_order.hpp)
  device::Event changed{};                       ///< on a GPU: streams that read wait for it
  const FetchedParameters* fetched = nullptr;    ///< null: no host fetches parameters
  ParameterGathers* gathers = nullptr;           ///< on a GPU: of parameters that ranks divide, whose addresses are not
                                                 ///< set here; null: all are in its memory
};

/// For kernels that read the model in host memory. Both blocks must outlive it.
[[nodiscard]] std::shared_ptr<const ModelView> view_of(const TensorBlock& parameters, const TensorBlock& states);

/// A model on the host, and its view on a device (null: it is on the host only). The host's blocks must outlive its
/// use.
struct ModelValues {
  const TensorBlock &parameters, &states;
  std::shared_ptr<const ModelView> placed = {};
};

/// Initial values: every element is a function of (seed, name, index) by Philox. `out`: the elements from `first` on.
void initialize(const Initializer& initializer, std::uint64_t seed, const std::string& name, std::span<float> out,
                std::int64_t first = 0);
/// Initialises those elements of tensors `ids` that this rank keeps, in their block.
void initialize(const Graph& graph, const std::vector<ValueId>& ids, std::uint64_t seed, const TensorBlock& block);

/// `parameters sha256`: SHA-256 over all tensors in order of name; per tensor its fp32 values, little-endian.
[[nodiscard]] std::string sha256_of(const TensorBlock& block);

}  // namespace lockstep::exec
