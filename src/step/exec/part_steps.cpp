#include "step/exec/part_steps.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

namespace lockstep::exec {

namespace {

bool has(const std::vector<Location>& list, const Location& location) {
  return std::find(list.begin(), list.end(), location) != list.end();
}

bool reads(const Instruction& instruction, const Location& location) {
  return has(instruction.inputs, location) || has(instruction.outputs, location) || has(instruction.saved, location) ||
         has(instruction.output_gradients, location) || instruction.input_gradient_term == location ||
         instruction.output_gradient_term == location;
}

bool writes(const Instruction& instruction, const Location& location) {
  return instruction.kind == Instruction::Kind::backward ? has(instruction.input_gradients, location)
                                                         : has(instruction.outputs, location);
}

/// The instructions of forward, or those of backward.
class Phase {
 public:
  Phase(const Program& program, std::size_t first, std::size_t end) : program_(program), first_(first), end_(end) {}

  void await(std::size_t entry, const Location& location) {
    std::size_t i = first_;
    while (i < end_ && !reads(program_.instructions[i], location)) ++i;
    awaited_[i].push_back(entry);
  }

  // A value in the arena stays there until the phase ends, so the last instruction that writes there has made it. All
  // other values are only passed on by this part.
  void send(const PartStep::Sent& what, const Location& location) {
    std::size_t i = location.space == Space::arena ? end_ : first_;
    while (i > first_ && !writes(program_.instructions[i - 1], location)) --i;
    i > first_ ? sent_[i].push_back(what) : passed_on_.push_back(what);
  }

  std::vector<PartStep> steps() const {
    std::set<std::size_t> bounds{end_};
    for (const auto& [begin, entries] : awaited_) bounds.insert(begin);
    for (const auto& [end, whats] : sent_) bounds.insert(end);
    bounds.erase(first_);
    std::vector<PartStep> steps;
    std::size_t begin = first_;
    for (const std::size_t end : bounds) {
      steps.push_back({end, of(awaited_, begin), of(sent_, end)});
      begin = end;
    }
    const std::vector<std::size_t> never_read = of(awaited_, end_);
    if (!never_read.empty() || !passed_on_.empty()) steps.push_back({end_, never_read, passed_on_});
    return steps;
  }

 private:
  template <class T>
  static std::vector<T> of(const std::map<std::size_t, std::vector<T>>& lists, std::size_t at) {
    const auto found = lists.find(at);
    return found == lists.end() ? std::vector<T>() : found->second;
  }

  const Program& program_;
  std::size_t first_, end_;
  std::map<std::size_t, std::vector<std::size_t>> awaited_;  // by the first instruction that reads them
  std::map<std::size_t, std::vector<PartStep::Sent>> sent_;  // by the instruction after the one that makes them
  std::vector<PartStep::Sent> passed_on_;
};

}  // namespace

PartSteps steps_of(const Program& program, std::size_t received, std::size_t arrivals) {
  const std::size_t forward_end = program.forward_end;
  Phase forward(program, 0, forward_end), backward(program, forward_end, program.instructions.size());
  const auto entry_of = [](Space space, std::size_t i) { return Location{space, static_cast<std::int64_t>(i)}; };
  for (std::size_t i = 0; i < received; ++i) forward.await(i, entry_of(Space::received, i));
  for (std::size_t i = 0; i < arrivals; ++i) backward.await(i, entry_of(Space::arrived, i));
  for (std::size_t i = 0; i < program.sent.size(); ++i) forward.send({i, 0}, program.sent[i]);
  for (std::size_t i = 0; i < program.received_gradients.size(); ++i) {
    const auto& terms = program.received_gradients[i];
    for (std::size_t term = 0; term < terms.size(); ++term) backward.send({i, term}, terms[term]);
  }
  return {forward.steps(), backward.steps()};
}

}  // namespace lockstep::exec
