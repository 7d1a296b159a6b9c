// PTX text as nvcc writes it, a statement a line, taken apart into kernels.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/interpreter/program.hpp"

namespace lockstep::ptx {

struct KernelText {
  std::string name, file;
  std::vector<Statement> parameters;          ///< ".param .u64 name"
  std::vector<Statement> directives;          ///< what stands between the parameters and the body
  std::vector<Statement> declarations;        ///< ".reg .b32 %r<12>"
  std::vector<Statement> statements;          ///< instructions, without the semicolon
  std::map<std::string, std::size_t> labels;  ///< where each leads among the statements
};

/// The highest version that it knows; another one is refused.
inline constexpr std::string_view kIsaVersion = "9.0";

/// Throws std::runtime_error, with `file` and the line, on what stands outside of kernels and isn't known.
std::vector<KernelText> read_ptx(std::string_view text, const std::string& file);

/// "a, {b, c}, [d]": what commas outside of braces and brackets divide, without blanks around.
std::vector<std::string> split_operands(std::string_view text);
std::string_view trimmed(std::string_view text);

}  // namespace lockstep::ptx
