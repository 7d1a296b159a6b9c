// The model's parameters and states: fp32, one block each, whole on every rank.
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

/// Named fp32 tensors in one allocation, each 64-byte aligned, in the order given.
class TensorBlock {
 public:
  TensorBlock() = default;
  TensorBlock(const Graph& graph, const std::vector<ValueId>& ids);

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] const std::string& name(std::size_t i) const { return entries_[i].name; }
  [[nodiscard]] const Shape& shape(std::size_t i) const { return entries_[i].shape; }
  [[nodiscard]] std::span<float> at(std::size_t i) const {
    return {reinterpret_cast<float*>(bytes_.data()) + entries_[i].offset,
            static_cast<std::size_t>(entries_[i].elements)};
  }
  [[nodiscard]] std::int64_t elements() const;  ///< of all tensors, without padding
  void fill_zero();

 private:
  struct Entry {
    std::string name;
    Shape shape;
    std::int64_t offset, elements;
  };
  std::vector<Entry> entries_;
  AlignedBytes bytes_;
};

/// Where kernels read a model.
struct ModelView {
  std::vector<const float*> parameters, states;  ///< per Graph::parameters, Graph::states
  std::vector<const void*> low_precision;        ///< of a GPU, per parameter: its copy (graph/precision.hpp), or null
  std::vector<bool> channels_last;               ///< per parameter: how it is kept (graph/weight_order.hpp)
  device::Event changed{};                       ///< of a GPU: streams that read wait for it
};

/// Of a model that kernels read in the host's memory. Both blocks outlive it.
[[nodiscard]] std::shared_ptr<const ModelView> view_of(const TensorBlock& parameters, const TensorBlock& states);

/// A model, and where a device has it: null where it is on the host only, whose blocks outlive its use.
struct ModelValues {
  const TensorBlock &parameters, &states;
  std::shared_ptr<const ModelView> placed = {};
};

/// First values: every element is a function of (seed, name, index) by Philox.
void initialize(const Initializer& initializer, std::uint64_t seed, const std::string& name, std::span<float> out);

/// `parameters sha256`: SHA-256 over all tensors in order of name; per tensor its fp32 values, little-endian.
[[nodiscard]] std::string sha256_of(const TensorBlock& block);

}  // namespace lockstep::exec
