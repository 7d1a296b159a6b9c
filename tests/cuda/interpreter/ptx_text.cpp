#include "cuda/interpreter/ptx_text.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace lockstep::ptx {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const auto first = text.find_first_not_of(kBlank), last = text.find_last_not_of(kBlank);
  return first == std::string_view::npos ? std::string_view() : text.substr(first, last - first + 1);
}

std::vector<std::string> split_operands(std::string_view text) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char now = i < text.size() ? text[i] : ',';
    if (now == '{' || now == '[') ++depth;
    if (now == '}' || now == ']') --depth;
    if (now != ',' || depth != 0) continue;
    const std::string_view part = trimmed(text.substr(start, i - start));
    if (!part.empty()) parts.emplace_back(part);
    start = i + 1;
  }
  return parts;
}

namespace {

/// Reads line by line: outside kernels, in a kernel's head, in its body.
class TextReader {
 public:
  explicit TextReader(std::string file) : file_(std::move(file)) {}

  void line(std::string_view text) {
    ++line_;
    if (const auto comment = text.find("//"); comment != std::string_view::npos) text = text.substr(0, comment);
    text = trimmed(text);
    if (text.empty()) return;
    if (where_ == Where::outside) {
      outside(text);
    } else if (where_ == Where::head) {
      head(text);
    } else {
      body(text);
    }
  }

  std::vector<KernelText> take() {
    if (where_ != Where::outside) fail("a kernel without an end", kernels_.back().name);
    for (KernelText& kernel : kernels_) kernel.dynamic_shared = dynamic_;
    return std::move(kernels_);
  }

 private:
  enum class Where : u8 { outside, head, body };

  [[noreturn]] void fail(std::string_view what, std::string_view text) const {
    throw std::runtime_error(fmt::format("{}:{}: {}: {}", file_, line_, what, text));
  }

  void outside(std::string_view text) {
    if (text.starts_with(".version")) {
      if (trimmed(text.substr(8)) != kIsaVersion) fail("expected PTX ISA " + std::string(kIsaVersion), text);
      return;
    }
    if (text.starts_with(".target") || text.starts_with(".address_size") || text.starts_with(".file")) return;
    if (text.starts_with(".extern .shared ") && text.ends_with("[];")) {
      text.remove_suffix(3);
      dynamic_.emplace_back(text.substr(text.rfind(' ') + 1));
      return;
    }
    const auto entry = text.find(".entry");
    if (entry == std::string_view::npos) fail("not known outside of kernels", text);
    const auto open = text.find('(', entry);
    KernelText kernel;
    kernel.name = trimmed(text.substr(entry + 6, open - entry - 6));
    kernel.file = file_;
    kernels_.push_back(std::move(kernel));
    where_ = Where::head;
  }

  void head(std::string_view text) {
    if (text == "{") {
      where_ = Where::body;
    } else if (text.starts_with(".param")) {
      if (text.ends_with(',')) text.remove_suffix(1);
      kernels_.back().parameters.push_back({line_, std::string(text)});
    } else if (text != ")") {
      kernels_.back().directives.push_back({line_, std::string(text)});
    }
  }

  void body(std::string_view text) {
    KernelText& kernel = kernels_.back();
    if (text == "}") {
      where_ = Where::outside;
    } else if (text.ends_with(':')) {
      kernel.labels[std::string(text.substr(0, text.size() - 1))] = kernel.statements.size();
    } else if (!text.ends_with(';')) {
      kernel.statements.push_back({line_, std::string(text)});  // decoding names unknown statements
    } else {
      text.remove_suffix(1);
      const bool declares = text.starts_with(".reg");
      (declares ? kernel.declarations : kernel.statements).push_back({line_, std::string(trimmed(text))});
    }
  }

  std::string file_;
  int line_ = 0;
  Where where_ = Where::outside;
  std::vector<KernelText> kernels_;
  std::vector<std::string> dynamic_;
};

}  // namespace

std::vector<KernelText> read_ptx(std::string_view text, const std::string& file) {
  TextReader reader(file);
  while (!text.empty()) {
    const auto end = text.find('\n');
    reader.line(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return reader.take();
}

}  // namespace lockstep::ptx
