// LoRA: low-rank adapters of linear layers. A layer y = x W^T + b becomes y + (alpha / rank) (x A^T) B^T with A [rank,
// in] and B [out, rank]; A begins as a linear layer's weight does, B at zero, so that the model begins as it was. The
// adapters are nodes of the graph like all others, with what that promises of their bits.
// Source: Hu et al., "LoRA: low-rank adaptation of large language models", 2021.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/graph_builder.hpp"
#include "lockstep/job.hpp"

namespace lockstep {

class Lora {
 public:
  /// Linear layers that `builder` makes from now on get adapters where the options say so. Both must outlive this.
  Lora(const LoraOptions& options, GraphBuilder& builder);
  ~Lora() { builder_.extend({}); }
  Lora(const Lora&) = delete;
  Lora& operator=(const Lora&) = delete;

  /// When the model is whole: freezes all parameters but the adapters and those that the options name. Throws
  /// Error(configuration) for a pattern that matches nothing.
  void finish();

 private:
  ValueId adapt(std::int32_t index);
  void refuse(const std::string& message) const;

  const LoraOptions& options_;
  GraphBuilder& builder_;
  std::set<std::string> adapted_, others_;  // linear layers, by name
  std::set<std::string> tied_;              // those that share a weight, which adapters would change elsewhere, too
};

/// Whether it is the name of an adapter's matrix: "block1.qkv.lora_a.weight".
[[nodiscard]] bool is_adapter(std::string_view parameter);

/// Which matrix of which layer an adapter's name is.
struct AdapterName {
  std::string layer;  ///< "block1.qkv"
  bool is_a = false;  ///< A, or B
};
[[nodiscard]] AdapterName adapter_name(std::string_view parameter);

/// A linear layer's adapter in a graph.
struct Adapter {
  std::string layer;  ///< "block1.qkv"
  ValueId a = -1, b = -1;
  double scale = 1;  ///< alpha / rank
};
[[nodiscard]] std::vector<Adapter> adapters_of(const Graph& graph);

/// weight + scale b a, which is the weight of one layer that computes the same. weight [out, in], a [rank, in], b [out,
/// rank]; summed in double, rounded once.
[[nodiscard]] std::vector<float> merged_weight(std::span<const float> weight, std::span<const float> a,
                                               std::span<const float> b, std::int64_t rank, double scale);

}  // namespace lockstep
