// PTX text as nvcc writes it, one statement per line, split into kernels.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/interpreter/program.hpp"

namespace lockstep::ptx {

struct KernelText {
  std::string name, file;
  std::vector<std::string> dynamic_shared;    ///< names of the memory whose size a launch states
  std::vector<Statement> parameters;          ///< ".param .u64 name"
  std::vector<Statement> directives;          ///< those between the parameters and the body
  std::vector<Statement> declarations;        ///< ".reg .b32 %r<12>"
  std::vector<Statement> statements;          ///< instructions, without the semicolon
  std::map<std::string, std::size_t> labels;  ///< the statement that each refers to
};

/// The highest supported version; others are refused.
inline constexpr std::string_view kIsaVersion = "9.0";

/// Throws std::runtime_error, with `file` and the line, on unknown statements outside kernels.
std::vector<KernelText> read_ptx(std::string_view text, const std::string& file);

/// "a, {b, c}, [d]": split at commas outside braces and brackets, without surrounding blanks.
std::vector<std::string> split_operands(std::string_view text);
std::string_view trimmed(std::string_view text);

}  // namespace lockstep::ptx
