#include "cuda/interpreter/operands.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <sstream>
#include <stdexcept>

namespace lockstep::ptx {

namespace {

constexpr std::size_t kRowBytes = 64;  // alignment of rows, for vectorization

const std::map<std::string, Width>& register_types() {
  static const std::map<std::string, Width> types = {
      {".pred", Width::predicate}, {".b16", Width::bits16}, {".u16", Width::bits16}, {".s16", Width::bits16},
      {".b32", Width::bits32},     {".u32", Width::bits32}, {".s32", Width::bits32}, {".f32", Width::bits32},
      {".b64", Width::bits64},     {".u64", Width::bits64}, {".s64", Width::bits64}, {".f64", Width::bits64},
  };
  return types;
}

const std::map<std::string, std::size_t>& parameter_types() {
  static const std::map<std::string, std::size_t> types = {
      {".b8", 1},  {".u8", 1},  {".b16", 2}, {".u16", 2}, {".b32", 4}, {".u32", 4},
      {".s32", 4}, {".f32", 4}, {".b64", 8}, {".u64", 8}, {".s64", 8}, {".f64", 8},
  };
  return types;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream from(text);
  std::vector<std::string> words;
  for (std::string word; from >> word;) words.push_back(word);
  return words;
}

constexpr std::array<const char*, 4> kSpecials = {"%tid.x", "%ctaid.x", "%ntid.x", "%nctaid.x"};

std::string without_number(const std::string& name) {
  std::size_t end = name.size();
  while (end > 0 && std::isdigit(static_cast<unsigned char>(name[end - 1])) != 0) --end;
  return name.substr(0, end);
}

std::size_t bytes_of(Width width) {
  switch (width) {
    case Width::predicate:
      return sizeof(u32);
    case Width::bits16:
      return kLanes * sizeof(u16);
    case Width::bits32:
      return kLanes * sizeof(u32);
    case Width::bits64:
      return kLanes * sizeof(u64);
  }
  return 0;
}

}  // namespace

void Operands::declare(const std::string& text) {
  const auto words = words_of(text);
  const auto type = words.size() == 3 ? register_types().find(words[1]) : register_types().end();
  const auto open = words.size() == 3 ? words[2].find('<') : std::string::npos;
  if (type == register_types().end() || open == std::string::npos)
    throw std::runtime_error("a declaration that isn't known");
  widths_[words[2].substr(0, open)] = type->second;
}

void Operands::parameter(const std::string& text) {
  std::size_t alignment = 0, bytes = 0;
  const auto words = words_of(text);
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    if (words[i] == ".align") {
      alignment = std::stoul(words.at(++i));
    } else if (const auto type = parameter_types().find(words[i]); type != parameter_types().end()) {
      bytes = type->second;
    } else {
      throw std::runtime_error("a parameter's " + words[i] + " isn't known");
    }
  }
  if (bytes == 0) throw std::runtime_error("a parameter without a type");
  if (alignment == 0) alignment = bytes;
  std::string name = words.back();
  if (const auto open = name.find('['); open != std::string::npos) {
    bytes *= std::stoul(name.substr(open + 1));
    name.resize(open);
  }
  const std::size_t at = (kernel_.parameter_bytes + alignment - 1) / alignment * alignment;
  kernel_.parameters.push_back({at, bytes});
  kernel_.parameter_bytes = at + bytes;
  parameters_[name] = at;
}

void Operands::shared(const std::string& text) {
  const auto words = words_of(text);
  const auto open = words.size() == 5 ? words[4].find('[') : std::string::npos;
  if (open == std::string::npos || words[1] != ".align" || words[3] != ".b8") {
    throw std::runtime_error("a declaration that isn't known");
  }
  if (kernel_.has_dynamic_shared) throw std::runtime_error("shared memory of a size that is declared and of another");
  const std::size_t alignment = std::stoul(words[2]);
  const std::size_t at = (kernel_.shared_bytes + alignment - 1) / alignment * alignment;
  shared_[words[4].substr(0, open)] = at;
  kernel_.shared_bytes = at + std::stoul(words[4].substr(open + 1));
}

Row Operands::new_row(Width width) {
  const auto row = static_cast<Row>(kernel_.register_bytes);
  kernel_.register_bytes += (bytes_of(width) + kRowBytes - 1) / kRowBytes * kRowBytes;
  return row;
}

Width Operands::width_of(const std::string& name) const {
  for (const char* const special : kSpecials) {
    if (name == special) return Width::bits32;
  }
  const auto found = widths_.find(without_number(name));
  if (found == widths_.end()) throw std::runtime_error("register " + name + " isn't known");
  return found->second;
}

Row Operands::named(const std::string& name) {
  const auto found = registers_.find(name);
  if (found != registers_.end()) return found->second.row;
  const Width width = width_of(name);
  const Row row = new_row(width);
  registers_[name] = {row, width};
  if (name.find('.') != std::string::npos) kernel_.specials[name] = row;
  return row;
}

u64 Operands::value_of(const std::string& text, Width width) {
  const bool is_float = text.starts_with("0f") || text.starts_with("0d");
  if (is_float && width != (text[1] == 'f' ? Width::bits32 : Width::bits64)) {
    throw std::runtime_error("constant " + text + " of another width");
  }
  std::size_t used = 0;
  u64 value = 0;
  if (is_float) {
    value = std::stoull(text.substr(2), &used, 16);
    used += 2;
  } else if (text.starts_with('-')) {
    value = static_cast<u64>(std::stoll(text, &used, 0));
  } else if (!text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) != 0) {
    value = std::stoull(text, &used, 0);
  }
  if (text.empty() || used != text.size()) throw std::runtime_error("operand " + text + " isn't known");
  return value;
}

Row Operands::constant(Width width, u64 value, bool is_parameter) {
  Row& row = is_parameter ? parameter_rows_.try_emplace(value, kNoRow).first->second
                          : constants_.try_emplace({width, value}, kNoRow).first->second;
  if (row == kNoRow) {
    row = new_row(width);
    kernel_.constants.push_back({row, width, value, is_parameter});
  }
  return row;
}

Row Operands::of_width(const std::string& operand, Width width) {
  if (operand.starts_with('%')) {
    if (width_of(operand) != width) throw std::runtime_error("register " + operand + " of another width");
    return named(operand);
  }
  if (const auto found = parameters_.find(operand); found != parameters_.end()) {
    if (width != Width::bits64) throw std::runtime_error("the address of " + operand + " in a narrow register");
    return constant(width, found->second, true);
  }
  if (const auto found = shared_.find(operand); found != shared_.end()) {
    if (width != Width::bits32) throw std::runtime_error("the address of " + operand + " in a register of 64 bits");
    return constant(width, found->second);
  }
  if (dynamic_.contains(operand)) {
    if (width != Width::bits32) throw std::runtime_error("the address of " + operand + " in a register of 64 bits");
    if (kernel_.shared_bytes != 0) throw std::runtime_error("shared memory of a size that is declared and of another");
    kernel_.has_dynamic_shared = true;
    return constant(width, 0);
  }
  return constant(width, value_of(operand, width));
}

std::pair<Row, s64> Operands::address(const std::string& operand, Width width) {
  if (operand.size() < 3 || operand.front() != '[' || operand.back() != ']') {
    throw std::runtime_error("address " + operand + " isn't known");
  }
  const std::string inner = operand.substr(1, operand.size() - 2);
  const auto sign = inner.find_first_of("+-", 1);
  const std::string base(trimmed(std::string_view(inner).substr(0, sign)));
  s64 offset = 0;
  if (sign != std::string::npos) offset = std::stoll(inner.substr(inner[sign] == '+' ? sign + 1 : sign));
  return {of_width(base, width), offset};
}

}  // namespace lockstep::ptx
