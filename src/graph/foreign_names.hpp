// What other libraries call the tensors of the zoo's models, and how they lay them out: torchvision's ResNet and
// MobileNetV2, and GPT-2 and Llama of Hugging Face's transformers.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/choices.hpp"
#include "lockstep/graph.hpp"

namespace lockstep {

struct ForeignTensor {
  std::string name;         ///< theirs
  bool transposed = false;  ///< a weight [out, in] is [in, out] there
  std::string tied = {};    ///< where files lack it: what it shares its values with
};

/// The names of one model in one library. A graph is that model if there is a rule for each of its tensors.
class ForeignModel {
 public:
  struct Rule {
    std::string ours, theirs;  ///< patterns: # is a number, in theirs one less; * at the end is whatever is left
    bool transposed = false;
    std::string tied = {};
  };

  ForeignModel(WeightNames library, std::string name, std::vector<Rule> rules);

  [[nodiscard]] WeightNames library() const { return library_; }
  [[nodiscard]] const std::string& name() const { return name_; }  ///< "resnet", "mobilenet", "gpt2", "llama"
  /// Of one of the model's tensors; nothing if no rule has it.
  [[nodiscard]] std::optional<ForeignTensor> find(std::string_view ours) const;
  [[nodiscard]] bool covers(const Graph& graph) const;

 private:
  WeightNames library_;
  std::string name_;
  std::vector<Rule> rules_;
};

/// All that is known.
[[nodiscard]] std::span<const ForeignModel> foreign_models();
/// The one that the graph is in that library; null: none.
[[nodiscard]] const ForeignModel* foreign_model(WeightNames library, const Graph& graph);

/// PyTorch's name of a tensor of a layer that both have: a running variance is called running_var.
[[nodiscard]] std::string torch_name(std::string_view ours);

}  // namespace lockstep
