#include "graph/memory_plan.hpp"

#include <algorithm>
#include <numeric>

#include "core/round_up.hpp"

namespace lockstep {

namespace {

constexpr std::int64_t kAlignment = 256;  // required by cuBLASLt's workspaces

struct Pair {
  Location read, written;
};

/// Pairs of operands of which the second may overwrite the first, the best choice first.
std::vector<Pair> pairs_of(const Graph& graph, const Instruction& instruction) {
  std::vector<Pair> pairs;
  const auto over_inputs = [&] {
    // A third input is read after the sum of the first two has been written to the output.
    const std::size_t count = instruction.inputs.size() > 2 ? 1 : instruction.inputs.size();
    for (std::size_t i = 0; i < count; ++i) pairs.push_back({instruction.inputs[i], instruction.outputs[0]});
  };
  if (instruction.kind == Instruction::Kind::add) {
    over_inputs();
    return pairs;
  }
  const InPlace& in_place = graph.nodes[instruction.node].op->in_place;
  if (instruction.kind == Instruction::Kind::recompute) return pairs;  // backward still reads the inputs
  if (instruction.kind == Instruction::Kind::forward) {
    if (in_place.forward) over_inputs();
    return pairs;
  }
  const Location& written = instruction.input_gradients[0];
  if (in_place.over_gradient && !instruction.output_gradients.empty()) {
    pairs.push_back({instruction.output_gradients[0], written});
    pairs.push_back({instruction.output_gradient_term, written});
  }
  const Node& node = graph.nodes[instruction.node];
  const bool apart = graph.at(node.inputs[0]).rounded_gradient.rounds();  // its elements lie elsewhere than the input's
  pairs.push_back({instruction.input_gradient_term, written});
  if (in_place.over_input && !apart) pairs.push_back({instruction.inputs[0], written});
  return pairs;
}

class Sharing {
 public:
  explicit Sharing(std::vector<Lifetime>& tensors) : tensors_(tensors), owners_(tensors.size()) {
    std::iota(owners_.begin(), owners_.end(), std::size_t{0});
  }

  /// Lets instruction `number` write over what it reads, if that is not needed any more.
  bool share(const Instruction& instruction, std::int32_t number, const Pair& pair) {
    if (pair.read.space != Space::arena || pair.written.space != Space::arena) return false;
    const std::size_t owner = owner_of(pair.read), tensor = pair.written.index;
    Lifetime &old = tensors_[owner], &fresh = tensors_[tensor];
    if (old.last != number || fresh.first != number || old.bytes != fresh.bytes) return false;
    if (uses(instruction, owner) != 1) return false;  // it is also another operand
    owners_[tensor] = owner;
    old.last = fresh.last;
    fresh.bytes = 0;
    return true;
  }

  [[nodiscard]] std::vector<std::size_t> owners() && { return std::move(owners_); }

 private:
  std::size_t owner_of(const Location& location) const { return owners_[location.index]; }
  int uses(const Instruction& instruction, std::size_t owner) const {
    int uses = 0;
    for (const auto* list : {&instruction.inputs, &instruction.outputs, &instruction.saved,
                             &instruction.output_gradients, &instruction.input_gradients}) {
      for (const Location& location : *list) {
        if (location.space == Space::arena && owner_of(location) == owner) ++uses;
      }
    }
    for (const Location& term : {instruction.input_gradient_term, instruction.output_gradient_term}) {
      if (term.space == Space::arena && owner_of(term) == owner) ++uses;
    }
    return uses;
  }

  std::vector<Lifetime>& tensors_;
  std::vector<std::size_t> owners_;
};

/// The tensor whose memory each tensor uses: its own, or that of an earlier one of the same size, whose lifetime is
/// then extended over both. Tensors that use another's memory get size 0.
std::vector<std::size_t> share_in_place(const Graph& graph, const Program& program, std::vector<Lifetime>& tensors) {
  Sharing sharing(tensors);
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    for (const Pair& pair : pairs_of(graph, instruction)) {
      if (sharing.share(instruction, i, pair)) break;
    }
  }
  return std::move(sharing).owners();
}

template <class Use>
void for_operands(Instruction& instruction, Use use) {
  for (auto* list : {&instruction.inputs, &instruction.outputs, &instruction.saved, &instruction.statistics,
                     &instruction.output_gradients, &instruction.input_gradients}) {
    for (Location& location : *list) use(location);
  }
  use(instruction.input_gradient_term);
  use(instruction.output_gradient_term);
  use(instruction.workspace);
}

/// Calls `use` for what is read after the program has run.
template <class Use>
void for_results(Program& program, Use use) {
  Results& results = program.results;
  use(results.loss);
  use(results.count);
  for (auto& [value, count] : results.metrics) {
    use(value);
    use(count);
  }
  use(results.prediction);
  for (auto& terms : program.received_gradients) {
    for (Location& location : terms) use(location);
  }
}

void set_lifetimes(Program& program, std::vector<Lifetime>& tensors) {
  const auto mark = [&](const Location& location, std::int32_t at) {
    if (location.space != Space::arena) return;
    Lifetime& tensor = tensors[location.index];
    if (tensor.first < 0) tensor.first = at;
    tensor.last = std::max(tensor.last, at);
  };
  const std::int32_t end = program.instructions.size();
  for (std::int32_t i = 0; i < end; ++i) {
    for_operands(program.instructions[i], [&](const Location& location) { mark(location, i); });
  }
  for_results(program, [&](const Location& location) { mark(location, end); });
  for (const Location& location : program.sent) mark(location, program.forward_end);
}

/// Computes offsets in the arena, and its size. Since longer lifetimes may fit worse, tensors then share memory only if
/// that does not need more.
std::int64_t place(const Graph& graph, const Program& program, std::vector<Lifetime>& tensors, bool in_place) {
  std::vector<Lifetime> shared = tensors;
  const std::int64_t bytes = plan_memory(tensors);
  if (!in_place) return bytes;
  const std::vector<std::size_t> owners = share_in_place(graph, program, shared);
  const std::int64_t shared_bytes = plan_memory(shared);
  if (shared_bytes > bytes) return bytes;
  for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].offset = shared[owners[i]].offset;
  return shared_bytes;
}

}  // namespace

std::int64_t plan_memory(std::vector<Lifetime>& tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return tensors[a].bytes > tensors[b].bytes; });

  std::vector<std::size_t> placed;  // ordered by offset
  std::int64_t arena = 0;
  for (const std::size_t index : order) {
    Lifetime& tensor = tensors[index];
    std::int64_t offset = 0;
    for (const std::size_t other_index : placed) {
      const Lifetime& other = tensors[other_index];
      if (other.last < tensor.first || tensor.last < other.first) continue;
      if (offset + tensor.bytes <= other.offset) break;
      offset = std::max(offset, other.offset + round_up(other.bytes, kAlignment));
    }
    tensor.offset = offset;
    arena = std::max(arena, offset + round_up(tensor.bytes, kAlignment));
    const auto by_offset = [&](std::size_t a, std::size_t b) { return tensors[a].offset < tensors[b].offset; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), index, by_offset), index);
  }
  return arena;
}

void plan_memory(const Graph& graph, Program& program, std::vector<Lifetime> tensors, bool in_place) {
  set_lifetimes(program, tensors);
  program.arena_bytes = place(graph, program, tensors, in_place);
  const auto move = [&](Location& location) {
    if (location.space == Space::arena) location.index = tensors[location.index].offset;
  };
  for (Instruction& instruction : program.instructions) for_operands(instruction, move);
  for_results(program, move);
  for (Location& location : program.sent) move(location);
}

}  // namespace lockstep
