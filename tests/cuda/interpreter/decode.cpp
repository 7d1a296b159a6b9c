#include "cuda/interpreter/decode.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <unordered_map>

#include "cuda/interpreter/meaning.hpp"
#include "cuda/interpreter/memory_instructions.hpp"
#include "cuda/interpreter/operands.hpp"

namespace lockstep::ptx {

namespace {

const Meaning* find_meaning(const std::string& name) {
  static const std::unordered_map<std::string_view, const Meaning*> all = [] {
    std::unordered_map<std::string_view, const Meaning*> map;
    for (const auto table : {integer_meanings(), float_meanings(), move_meanings()}) {
      for (const Meaning& meaning : table) map.emplace(meaning.name, &meaning);
    }
    return map;
  }();
  const auto found = all.find(name);
  return found == all.end() ? nullptr : found->second;
}

class Decoder {
 public:
  explicit Decoder(const KernelText& text) : text_(text), operands_(kernel_) {}

  Kernel decode() {
    kernel_.name = text_.name;
    kernel_.file = text_.file;
    for (const Statement& one : text_.directives) at(one, [&] { directive(one.text); });
    for (const std::string& one : text_.dynamic_shared) operands_.dynamic_shared(one);
    for (const Statement& one : text_.parameters) at(one, [&] { operands_.parameter(one.text); });
    for (const Statement& one : text_.declarations) at(one, [&] { operands_.declare(one.text); });
    for (const Statement& one : text_.statements) {
      at(one, [&] { statement(one); });
    }
    kernel_.code.push_back({.flow = Flow::leave});
    kernel_.statements.push_back({0, "(the end)"});
    for (const auto& [instruction, label] : branches_)
      kernel_.code[instruction].target = places_[text_.labels.at(label)];
    return std::move(kernel_);
  }

 private:
  template <class Function>
  void at(const Statement& statement, const Function& function) {
    try {
      function();
    } catch (const std::exception& error) {
      throw std::runtime_error(
          fmt::format("{} ({}:{}: {}): {}", text_.name, text_.file, statement.line, statement.text, error.what()));
    }
  }

  void directive(const std::string& text) {
    if (text.starts_with(".maxntid ")) {
      kernel_.max_threads = static_cast<u32>(std::stoul(text.substr(9)));
    } else if (!text.starts_with(".minnctapersm")) {
      throw std::runtime_error("a directive that isn't known");
    }
  }

  void statement(const Statement& statement) {
    places_.push_back(static_cast<u32>(kernel_.code.size()));
    if (statement.text.starts_with(".pragma \"nounroll\"")) return;
    if (statement.text.starts_with(".shared ")) return operands_.shared(statement.text);
    const auto end = statement.text.find(' ');
    const std::string name = statement.text.substr(0, end);
    if (name.starts_with("ld.param.v2.") || name.starts_with("ld.param.v4.")) {
      vector(statement, name, split_operands(std::string_view(statement.text).substr(end)));
    } else if (statement.text.starts_with("mov.b32 {")) {
      halves(statement, split_operands(std::string_view(statement.text).substr(end)));
    } else {
      push(instruction(statement.text), statement);
    }
  }

  void push(const Instruction& one, const Statement& statement) {
    kernel_.code.push_back(one);
    kernel_.statements.push_back(statement);
  }

  Instruction instruction(std::string text) {
    Instruction one;
    if (text.starts_with('@')) {
      const auto end = text.find_first_of(" \t");
      one.unless = text.at(1) == '!';
      one.guard = operands_.of_width(text.substr(one.unless ? 2 : 1, end - (one.unless ? 2 : 1)), Width::predicate);
      text = trimmed(std::string_view(text).substr(end));
    }
    const auto end = text.find_first_of(" \t");
    const std::string name = text.substr(0, end);
    const auto operands = end == std::string::npos ? std::vector<std::string>() : split_operands(text.substr(end));
    if (name == "ret" || name == "exit") {
      one.flow = Flow::leave;
    } else if (name == "bra" || name == "bra.uni") {
      branch(one, operands);
    } else if (name == "bar.warp.sync") {
      one.flow = Flow::barrier;
      one.from[0] = operands_.of_width(operands.at(0), Width::bits32);
    } else if (name == "bar.sync" && operands.size() == 1 && operands[0] == "0") {
      one.flow = Flow::block_barrier;
      kernel_.has_block_barriers = true;
    } else if (name == "shfl.sync.bfly.b32" || name == "shfl.sync.idx.b32") {
      one.butterfly = name == "shfl.sync.bfly.b32";
      shuffle(one, operands);
    } else if (accesses_memory(name)) {
      memory(one, name, operands);
    } else {
      computing(one, name, operands);
    }
    return one;
  }

  void branch(Instruction& one, const std::vector<std::string>& operands) {
    one.flow = Flow::branch;
    if (!text_.labels.contains(operands.at(0))) throw std::runtime_error("label " + operands[0] + " isn't there");
    branches_.emplace_back(kernel_.code.size(), operands[0]);
  }

  void shuffle(Instruction& one, const std::vector<std::string>& operands) {
    one.flow = Flow::shuffle;
    const std::string& to = operands.at(0);
    const auto bar = to.find('|');
    one.to = operands_.of_width(to.substr(0, bar), Width::bits32);
    if (bar != std::string::npos) one.found = operands_.of_width(to.substr(bar + 1), Width::predicate);
    for (std::size_t i = 0; i < 4; ++i) one.from[i] = operands_.of_width(operands.at(i + 1), Width::bits32);
  }

  void memory(Instruction& one, const std::string& name, const std::vector<std::string>& operands) {
    const bool stores = name.starts_with("st.");
    const std::vector<std::string> values = elements(operands.at(stores ? 1 : 0));
    const std::string& value = values.at(0);
    const std::string type = name.substr(name.rfind('.') + 1);
    const Width of_constant = type.ends_with("64")   ? Width::bits64
                              : type.ends_with("32") ? Width::bits32
                                                     : Width::bits16;
    const Width width = value.starts_with('%') ? operands_.width_of(value) : of_constant;
    const MemoryMeaning meaning = memory_meaning(name, width);
    if (meaning.run == nullptr) throw std::runtime_error("instruction " + name + " isn't known");
    one.run = meaning.run;
    std::tie(one.from[0], one.offset) = operands_.address(operands.at(stores ? 0 : 1), meaning.address);
    if (meaning.elements > 1) {
      if (values.size() != meaning.elements) throw std::runtime_error("another number of operands than is known");
      for (std::size_t i = 0; i < values.size(); ++i) one.vector[i] = operands_.of_width(values[i], width);
      return;
    }
    (stores ? one.from[1] : one.to) = operands_.of_width(value, width);
    if (meaning.form == MemoryMeaning::Form::update) one.from[1] = operands_.of_width(operands.at(2), width);
  }

  /// Of "{%f1, %f2}", or of one that stands alone.
  static std::vector<std::string> elements(const std::string& operand) {
    if (!operand.starts_with('{')) return {operand};
    return split_operands(std::string_view(operand).substr(1, operand.size() - 2));
  }

  /// "ld.param.v2.f32 {%f1, %f2}, [p]" is decoded as several loads in a row.
  void vector(const Statement& statement, const std::string& name, const std::vector<std::string>& operands) {
    const std::string type = name.substr(name.rfind('.'));
    const s64 bytes = std::stoll(type.substr(2)) / 8;
    const auto values = elements(operands.at(0));
    for (std::size_t i = 0; i < values.size(); ++i) {
      Instruction one;
      memory(one, "ld.param" + type, {values[i], operands.at(1)});
      one.offset += static_cast<s64>(i) * bytes;
      push(one, statement);
    }
  }

  /// "mov.b32 {%rs1, %rs2}, %r1" is decoded as two moves.
  void halves(const Statement& statement, const std::vector<std::string>& operands) {
    const auto values = elements(operands.at(0));
    for (const std::size_t i : {0, 1}) {
      Instruction one;
      computing(one, i == 0 ? "mov.b32.lower" : "mov.b32.upper", {values.at(i), operands.at(1)});
      push(one, statement);
    }
  }

  void computing(Instruction& one, const std::string& name, const std::vector<std::string>& operands) {
    if (name == "mov.b32" && operands.at(1).starts_with('{')) {
      const auto values = elements(operands[1]);
      return computing(one, "mov.b32.both", {operands[0], values.at(0), values.at(1)});
    }
    const Meaning* const meaning = find_meaning(name);
    if (meaning == nullptr) throw std::runtime_error("instruction " + name + " isn't known");
    if (operands.size() != meaning->count) throw std::runtime_error("another number of operands than is known");
    one.run = meaning->run;
    one.to = operands_.of_width(operands[0], meaning->operands[0]);
    for (std::size_t i = 1; i < operands.size(); ++i) {
      one.from[i - 1] = operands_.of_width(operands[i], meaning->operands[i]);
    }
  }

  const KernelText& text_;
  Kernel kernel_;
  Operands operands_;
  std::vector<u32> places_;                                    ///< index of each statement's instruction
  std::vector<std::pair<std::size_t, std::string>> branches_;  ///< with targets to be resolved
};

}  // namespace

Kernel decode(const KernelText& text) {
  return Decoder(text).decode();
}

}  // namespace lockstep::ptx
