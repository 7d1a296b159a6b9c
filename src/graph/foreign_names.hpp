// What other libraries call the tensors of the zoo's models, and how they lay them out: torchvision's ResNet and
// MobileNetV2, and GPT-2, Llama, BERT and ViT of Hugging Face's transformers.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/choices.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep {

struct ForeignTensor {
  std::vector<std::string> names;  ///< theirs; several: each has an equal part of the rows
  bool transposed = false;         ///< a weight [out, in] is [in, out] there
  std::string tied = {};           ///< where files lack it: what it shares its values with
  int leading = 0;                 ///< dimensions of 1 before the others there
  bool alike = false;              ///< several names: all have the same values, the whole of ours

  /// Of each of theirs, where ours has this shape.
  Shape shape_there(Shape ours) const;
};

/// The names of one model in one library. A graph is that model if there is a rule for each of its tensors.
class ForeignModel {
 public:
  struct Rule {
    std::string ours, theirs;  ///< patterns: # is a number, in theirs one less; * at the end is whatever is left
    bool transposed = false;
    std::string tied = {};
    std::vector<std::string> parts = {};  ///< what stands for @ in `theirs`, one after another
    int leading = 0;
  };

  /// `needed`: a tensor of ours without which a model is another one; empty: none.
  ForeignModel(WeightNames library, std::string name, std::vector<Rule> rules, std::string needed = {});

  WeightNames library() const { return library_; }
  const std::string& name() const { return name_; }  ///< "resnet", "mobilenet", "gpt2", "llama", "bert", "vit"
  /// Of one of the model's tensors; nothing if no rule has it. A matrix of an adapter (graph/lora.hpp) has PEFT's name.
  std::optional<ForeignTensor> find(std::string_view ours) const;
  bool covers(const Graph& graph) const;

 private:
  std::optional<ForeignTensor> find_adapter(std::string_view ours) const;

  WeightNames library_;
  std::string name_;
  std::vector<Rule> rules_;
  std::string needed_;
};

/// All that is known.
[[nodiscard]] std::span<const ForeignModel> foreign_models();
/// The one that the graph is in that library; null: none.
[[nodiscard]] const ForeignModel* foreign_model(WeightNames library, const Graph& graph);

/// What PEFT puts before the names of a model that it adapts.
inline constexpr std::string_view kPeftPrefix = "base_model.model.";

/// PyTorch's name of a tensor of a layer that both have: a running variance is called running_var, those of lstm and
/// gru are of the module's layer 0 ("rnn.weight_ih_l0"), whose second direction has "_reverse" behind them.
[[nodiscard]] std::string torch_name(std::string_view ours);

}  // namespace lockstep
