// compile: forward in graph order, autodiff in reverse, then the memory plan.
//
// Until the plan, tensors are in single-assignment form: the gradient of a value that is used n times is summed
// pairwise into fresh tensors, in reverse graph order. Views and `passes_gradient` ops only rename tensors.
//
// With recompute_blocks, a value that only nodes of its own block read has two tensors: one during forward, and one
// that the block's second forward writes, right before the block's first backward instruction. So only the inputs of
// blocks are kept in between (T. Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016).
#include <algorithm>
#include <map>
#include <utility>

#include "graph/blocks.hpp"
#include "graph/gradient_flow.hpp"
#include "graph/memory_plan.hpp"
#include "graph/parts.hpp"
#include "graph/precision.hpp"
#include "graph/program.hpp"
#include "graph/weighted_loss.hpp"
#include "lockstep/error.hpp"

namespace lockstep {

namespace {

std::vector<ValueId> sent_by(const CompileOptions& options) {
  return options.boundary == nullptr ? std::vector<ValueId>() : options.boundary->sent;
}

class Compiler {
 public:
  Compiler(const Graph& graph, Mode mode, const WorkspaceRule& workspace_of, const CompileOptions& options)
      : graph_(graph),
        workspace_of_(workspace_of),
        options_(options),
        producer_(graph.values.size(), -1),
        place_(graph.values.size()),
        saved_(graph.nodes.size()),
        gradient_(graph.values.size()),
        flow_(options.boundary != nullptr ? options.boundary->flow : gradient_flow(graph)),
        blocks_(mode == Mode::training && options.recompute_blocks ? Blocks(graph, sent_by(options)) : Blocks()) {
    program_.mode = mode;
    index_roles();
  }

  Program run() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) forward(n);
    program_.forward_end = program_.instructions.size();
    if (options_.boundary != nullptr) program_.sent = places(options_.boundary->sent);
    if (program_.mode == Mode::training) {
      for (auto n = static_cast<std::int32_t>(graph_.nodes.size()) - 1; n >= 0; --n) {
        add_arrivals(n);
        backward(n);
      }
      add_arrivals(-1);
      send_gradients();
    }
    find_results();
    plan_memory(graph_, program_, std::move(tensors_), options_.in_place);
    return std::move(program_);
  }

 private:
  // Until the plan, Location{arena, i} means tensors_[i].
  Location new_tensor(std::size_t bytes) {
    tensors_.push_back({static_cast<std::int64_t>(bytes), -1, -1, -1});
    return {Space::arena, static_cast<std::int64_t>(tensors_.size() - 1)};
  }

  void index_roles() {
    const auto fill = [&](const std::vector<ValueId>& ids, Space space) {
      for (std::size_t i = 0; i < ids.size(); ++i) place_at(ids[i]) = {space, static_cast<std::int64_t>(i)};
    };
    fill(graph_.inputs, Space::input);
    fill(graph_.parameters, Space::parameter);
    fill(graph_.states, Space::state);
    if (options_.boundary == nullptr) return;
    const auto& received = options_.boundary->received;
    program_.received_gradients.resize(received.size());
    received_.assign(graph_.values.size(), -1);
    for (std::size_t i = 0; i < received.size(); ++i) {
      const std::int64_t entry = i;
      place_at(received[i].value) = {Space::received, entry};
      received_[received[i].value] = entry;
    }
  }

  Location& place_at(ValueId id) { return place_[id]; }
  Location& gradient_at(ValueId id) { return gradient_[id]; }
  std::vector<Location> places(const std::vector<ValueId>& ids) {
    std::vector<Location> list;
    for (const ValueId id : ids) list.push_back(place_at(id));
    return list;
  }

  std::vector<Location> parameter_places(const Node& node) {
    std::vector<Location> list = places(node.parameters);
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (node.low_precision_weights && is_low_precision_weight(graph_, node, i)) list[i].space = Space::low_precision;
    }
    return list;
  }

  void emit(Instruction instruction) {
    if (instruction.node >= 0) {
      if (const std::size_t bytes = workspace_of_(instruction.node); bytes > 0) {
        instruction.workspace = new_tensor(bytes);
      }
    }
    instruction.slots_done = program_.slots.size();
    program_.instructions.push_back(std::move(instruction));
  }

  Location new_slot(Slot::Kind kind, std::int64_t target, std::int64_t elements) {
    program_.slots.push_back({kind, static_cast<std::int32_t>(target), elements});
    return {Space::slot, static_cast<std::int64_t>(program_.slots.size() - 1)};
  }

  void forward(std::int32_t index) {
    const Node& node = graph_.nodes[index];
    if (node.op->view) {
      place_at(node.outputs[0]) = place_at(node.inputs[0]);
      return;
    }
    Instruction instruction;
    instruction.kind = Instruction::Kind::forward;
    instruction.node = index;
    instruction.inputs = places(node.inputs);
    instruction.parameters = parameter_places(node);
    instruction.states = places(node.states);
    for (const ValueId id : node.outputs) place_at(id) = new_tensor(graph_.at(id).spec.bytes());
    instruction.outputs = places(node.outputs);
    for (const auto& spec : node.saved) saved_[index].push_back(new_tensor(spec.bytes()));
    instruction.saved = saved_[index];
    if (program_.mode == Mode::training) {
      if (can_be_recomputed(node, index) && blocks_.of(index) == nullptr) producer_[node.outputs[0]] = index;
      for (const ValueId id : node.states) {
        instruction.statistics.push_back(
            new_slot(Slot::Kind::statistic, place_at(id).index, graph_.at(id).spec.elements()));
      }
    }
    emit(std::move(instruction));
  }

  // Runs the forward of a block again. Values that nodes outside read are still in memory; of the others, those that
  // the block's backward reads are recomputed. Statistics were counted the first time.
  void recompute_block(const Block& block) {
    const std::vector<bool> again = nodes_to_recompute(block);
    for (std::int32_t n = block.first; n < block.end; ++n) {
      const Node& node = graph_.nodes[n];
      if (node.op->view) {
        if (!blocks_.is_read_outside(node.outputs[0])) place_at(node.outputs[0]) = place_at(node.inputs[0]);
        continue;
      }
      if (!again[n - block.first]) continue;
      Instruction instruction;
      instruction.kind = Instruction::Kind::forward;
      instruction.node = n;
      instruction.inputs = places(node.inputs);
      instruction.parameters = parameter_places(node);
      instruction.states = places(node.states);
      for (const ValueId id : node.outputs) {
        const Location made = new_tensor(graph_.at(id).spec.bytes());
        instruction.outputs.push_back(made);
        if (!blocks_.is_read_outside(id)) place_at(id) = made;
      }
      auto& saved = saved_[n];
      saved.clear();
      for (const auto& spec : node.saved) saved.push_back(new_tensor(spec.bytes()));
      instruction.saved = saved;
      for (const ValueId id : node.states) instruction.statistics.push_back(new_tensor(graph_.at(id).spec.bytes()));
      emit(std::move(instruction));
    }
  }

  // The nodes of a block that make what the block's backward reads, or what such a node reads.
  std::vector<bool> nodes_to_recompute(const Block& block) const {
    std::vector<bool> read(graph_.values.size()), again(block.end - block.first);
    const auto reads = [&](const std::vector<ValueId>& ids) {
      for (const ValueId id : ids) read[id] = true;
    };
    for (std::int32_t n = block.end - 1; n >= block.first; --n) {
      const Node& node = graph_.nodes[n];
      if (node.op->backward_reads.inputs) reads(node.inputs);
      if (node.op->backward_reads.outputs || node.epilogue != nullptr) reads(node.outputs);
    }
    for (std::int32_t n = block.end - 1; n >= block.first; --n) {
      const Node& node = graph_.nodes[n];
      const bool makes = std::any_of(node.outputs.begin(), node.outputs.end(),
                                     [&](ValueId id) { return read[id] && !blocks_.is_read_outside(id); });
      if (!makes && node.saved.empty()) continue;
      again[n - block.first] = true;
      reads(node.inputs);
    }
    return again;
  }

  // Its inputs must be kept anyway, for its own backward.
  bool can_be_recomputed(const Node& node, std::int32_t index) const {
    return options_.can_recompute && node.op->backward_reads.inputs && options_.can_recompute(index);
  }

  // The location at which backward reads it.
  Location kept_or_recomputed(ValueId id) {
    const std::int32_t index = std::exchange(producer_[id], -1);
    if (index < 0) return place_at(id);
    const Node& node = graph_.nodes[index];
    Instruction instruction;
    instruction.kind = Instruction::Kind::recompute;
    instruction.node = index;
    for (const ValueId input : node.inputs) instruction.inputs.push_back(kept_or_recomputed(input));
    instruction.parameters = places(node.parameters);
    instruction.states = places(node.states);
    instruction.saved = saved_[index];
    place_at(id) = new_tensor(graph_.at(id).spec.bytes());
    instruction.outputs.assign(node.outputs.size(), {});
    instruction.outputs[0] = place_at(id);
    emit(std::move(instruction));
    return place_at(id);
  }
  std::vector<Location> kept_or_recomputed(const std::vector<ValueId>& ids) {
    std::vector<Location> list;
    for (const ValueId id : ids) list.push_back(kept_or_recomputed(id));
    return list;
  }

  bool needs(ValueId id) const { return flow_.wanted[id]; }

  // Adds gradients from other parts that come right before the contribution of `node`'s backward.
  void add_arrivals(std::int32_t node) {
    if (options_.boundary == nullptr) return;
    const auto& arrivals = options_.boundary->arrivals;
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      if (arrivals[i].before != node + 1) continue;
      add_to_gradient(arrivals[i].value, {Space::arrived, static_cast<std::int64_t>(i)});
    }
  }

  // Adds the contribution of `node`'s backward, or leaves it as a separate term for the part that made the value.
  void contribute(std::int32_t node, ValueId id, Location contribution) {
    const std::int32_t entry = received_.empty() ? -1 : received_[id];
    if (entry >= 0 && node < options_.boundary->received[entry].sum_from) {
      program_.received_gradients[entry].push_back(contribution);
    } else {
      add_to_gradient(id, contribution);
    }
  }

  // The sum of uses comes first.
  void send_gradients() {
    for (std::size_t i = 0; i < program_.received_gradients.size(); ++i) {
      const Location& sum = gradient_at(options_.boundary->received[i].value);
      auto& terms = program_.received_gradients[i];
      if (sum.space != Space::none) terms.insert(terms.begin(), sum);
    }
  }

  // Adds `contribution` to the gradient of `id`; the first one is not copied.
  void add_to_gradient(ValueId id, Location contribution) {
    Location& gradient = gradient_at(id);
    if (gradient.space == Space::none) {
      gradient = contribution;
      return;
    }
    LOCKSTEP_CHECK(!graph_.at(id).rounded_gradient.rounds(), "nothing is added to a rounded gradient");
    if (addable_.space != Space::none && contribution == addable_) {
      program_.instructions.back().input_gradient_term = std::exchange(gradient, contribution);
      return;
    }
    Instruction add;
    add.kind = Instruction::Kind::add;
    add.inputs = {gradient, contribution};
    add.elements = graph_.at(id).spec.elements();
    add.dtype = graph_.at(id).spec.dtype;
    gradient = new_tensor(graph_.at(id).spec.bytes());
    add.outputs = {gradient};
    emit(std::move(add));
  }

  void backward(std::int32_t index) {
    const Node& node = graph_.nodes[index];
    if (!flow_.backward[index]) return;
    const bool is_loss = index == graph_.loss;
    const Location gradient = is_loss ? Location{} : gradient_at(node.outputs[0]);
    if (node.op->view || (node.op->passes_gradient && node.epilogue == nullptr)) {
      for (const ValueId id : node.inputs) {
        if (needs(id)) contribute(index, id, gradient);
      }
      return;
    }
    if (const Block* const block = blocks_.of(index); block != nullptr && block != recomputed_) {
      recompute_block(*block);
      recomputed_ = block;
    }
    Instruction instruction;
    instruction.kind = Instruction::Kind::backward;
    instruction.node = index;
    if (!is_loss) {
      instruction.output_gradients = {gradient};
      if (options_.adds_output_gradients && options_.adds_output_gradients(index)) take_terms(instruction);
    }
    bind_forward_tensors(node, index, instruction);
    const auto contributions = make_input_gradients(node, index, instruction);
    for (const ValueId id : node.parameters) {
      instruction.parameter_gradients.push_back(
          needs(id) ? new_slot(Slot::Kind::gradient, place_at(id).index, graph_.at(id).spec.elements()) : Location{});
    }
    emit(std::move(instruction));
    if (contributions.size() == 1 && options_.adds_input_gradient && options_.adds_input_gradient(index)) {
      addable_ = program_.instructions.back().input_gradients[0];
    }
    for (const auto& [id, place] : contributions) contribute(index, id, place);
    addable_ = {};
  }

  // If the output's gradient is a sum that nothing else reads, the instruction gets its terms, and the sum is not made.
  void take_terms(Instruction& instruction) {
    const Location sum = instruction.output_gradients[0];
    auto& before = program_.instructions;
    const auto makes = [&](const Instruction& other) {
      return other.kind == Instruction::Kind::add && other.outputs[0] == sum;
    };
    const auto found = std::find_if(before.begin(), before.end(), makes);
    if (found == before.end() || std::count(gradient_.begin(), gradient_.end(), sum) != 1) return;
    instruction.output_gradients = {found->inputs[0]};
    instruction.output_gradient_term = found->inputs[1];
    tensors_[sum.index].bytes = 0;
    before.erase(found);
  }

  // Pairs of values and the gradients that the node's backward contributes to them.
  std::vector<std::pair<ValueId, Location>> make_input_gradients(const Node& node, std::int32_t index,
                                                                 Instruction& instruction) {
    std::vector<std::pair<ValueId, Location>> contributions;
    if (node.op->passes_gradient) {  // one gradient for all inputs, computed from the epilogue's
      const Location place = new_tensor(graph_.at(node.inputs[0]).spec.bytes());
      instruction.input_gradients.resize(node.inputs.size());
      instruction.input_gradients[0] = place;
      for (const ValueId id : node.inputs) {
        if (needs(id)) contributions.emplace_back(id, place);
      }
      return contributions;
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      Location place;
      if (adds_gradient(graph_, flow_, index, i)) {
        place = new_tensor(gradient_bytes(graph_.at(node.inputs[i])));
        contributions.emplace_back(node.inputs[i], place);
      }
      instruction.input_gradients.push_back(place);
    }
    return contributions;
  }

  void bind_forward_tensors(const Node& node, std::int32_t index, Instruction& instruction) {
    instruction.parameters = parameter_places(node);
    instruction.states = places(node.states);
    instruction.saved = saved_[index];
    instruction.inputs =
        node.op->backward_reads.inputs ? kept_or_recomputed(node.inputs) : std::vector<Location>(node.inputs.size());
    if (is_weighted(node)) instruction.inputs.back() = place_at(node.inputs.back());
    const bool reads_outputs = node.op->backward_reads.outputs || node.epilogue != nullptr;
    instruction.outputs = reads_outputs ? kept_or_recomputed(node.outputs) : std::vector<Location>(node.outputs.size());
  }

  void find_results() {
    Results& results = program_.results;
    const auto pair_of = [&](std::int32_t index) {
      const Node& node = graph_.nodes[index];
      return std::pair{place_at(node.outputs.at(0)), place_at(node.outputs.at(1))};
    };
    if (graph_.loss >= 0) std::tie(results.loss, results.count) = pair_of(graph_.loss);
    for (const auto index : graph_.metrics) results.metrics.push_back(pair_of(index));
    // A graph with a loss is evaluated, and its prediction is rarely read: copying it could mean gigabytes, a score for
    // each token and vocabulary entry. Not every part has the output.
    const bool predicts = program_.mode == Mode::inference && (graph_.loss < 0 || graph_.keeps_output);
    if (predicts && graph_.output >= 0) results.prediction = place_at(graph_.output);
  }

  const Graph& graph_;
  const WorkspaceRule& workspace_of_;
  const CompileOptions& options_;
  Program program_;
  std::vector<Lifetime> tensors_;
  std::vector<std::int32_t> producer_;        // by value: the node that can still recompute it; -1: none
  std::vector<Location> place_;               // by value
  std::vector<std::vector<Location>> saved_;  // by node
  std::vector<Location> gradient_;            // by value
  std::vector<std::int32_t> received_;        // by value: the entry of the boundary; -1: none. Empty: the graph is no
                                              // part
  GradientFlow flow_;
  Location addable_;  // the gradient of input 0 that the instruction just emitted writes, if it can add another to it
  Blocks blocks_;     // to be recomputed
  const Block* recomputed_ = nullptr;  // the latest recomputed one
};

}  // namespace

Program compile(const Graph& graph, Mode mode, const WorkspaceRule& workspace_of, const CompileOptions& options) {
  return Compiler(graph, mode, workspace_of, options).run();
}

}  // namespace lockstep
