// GraphBuilder makes a graph node by node. A model (ModelDef) is a function that calls it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/graph.hpp"
#include "lockstep/op.hpp"
#include "lockstep/registry.hpp"

namespace lockstep {

class GraphBuilder {
 public:
  /// `batch`: samples of a micro-batch, dimension 0 of every input.
  GraphBuilder(const OpRegistry& ops, std::int64_t batch) : ops_(ops), batch_(batch) {}

  /// Declares an input. `sample`: its type and shape without the batch dimension.
  ValueId input(const std::string& name, const TensorSpec& sample);

  /// Appends a node, or those that a layer is made of (OpDef::compose), and returns its first output. Missing
  /// attributes get the op's defaults. An empty name becomes
  /// "<op><n>", where n counts the nodes of that op from 1. The attribute `tied: <node>` shares that node's weight.
  /// Throws Error(configuration) with the node's name, what was expected and what was found.
  ValueId apply(const std::string& op, const std::vector<ValueId>& inputs, Attributes attributes = {},
                const std::string& name = "");

  /// As apply(), but returns the index of the node: losses and metrics have two outputs.
  std::int32_t add_node(const std::string& op, const std::vector<ValueId>& inputs, Attributes attributes,
                        const std::string& name);

  /// Called with each node that apply() adds, from now on; returns the output that apply() does, which may be of nodes
  /// that it adds by add_node().
  using Extend = std::function<ValueId(std::int32_t node)>;
  void extend(Extend extend) { extend_ = std::move(extend); }

  /// Nodes added from now on belong to this block (Node::block); empty: to none.
  void begin_block(const std::string& name) { block_ = name; }
  /// Nodes added from now on belong to this part (Node::part); empty: to the previous node's.
  void begin_part(const std::string& name) { part_ = name; }

  const TensorSpec& spec(ValueId id) const { return graph_.at(id).spec; }
  std::int64_t batch() const { return batch_; }
  const OpRegistry& ops() const { return ops_; }
  [[nodiscard]] Graph& graph() { return graph_; }

 private:
  ValueId add_value(Value value);
  void add_parameters(Node& node, const Signature& signature);
  void add_states(Node& node, const Signature& signature);
  std::string unique_name(const std::string& op, const std::string& wanted);

  const OpRegistry& ops_;
  std::int64_t batch_;
  Graph graph_;
  std::string block_, part_;
  Extend extend_;
  std::map<std::string, int> counts_;          // nodes made so far, by op
  std::map<std::string, ValueId> parameters_;  // by name
  std::map<std::string, std::int32_t> nodes_;  // by name
};

/// What a model may know about the data.
struct ModelContext {
  std::vector<std::pair<std::string, ValueId>> inputs;  ///< all but the target, in the data set's order
  std::int64_t classes = 0;                             ///< 0: not a classification set
  std::int64_t vocabulary = 0;                          ///< 0: not a token set
  std::int64_t context = 0;                             ///< token sets: tokens of a sample
};

class ModelDef {
 public:
  static constexpr const char* kNoun = "model";
  std::string name;
  std::string doc;
  int order = 100;  ///< position in messages and on pages; equal ones are sorted by name
  std::vector<AttributeSpec> attributes;
  std::string shorthand;          ///< the attribute that a bare value sets, as in `resnet: 50`; empty: none
  bool batch_statistics = false;  ///< has batch norm: micro-batches should have at least 16 samples
  std::function<ValueId(GraphBuilder&, const Attributes&, const ModelContext&)> build;  ///< returns the prediction
  const char* missing() const { return build ? "" : "build"; }
};

using ModelRegistry = Registry<ModelDef>;

}  // namespace lockstep
