// The operands of one kernel: the row of each register, each constant and each parameter's address.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "cuda/interpreter/program.hpp"
#include "cuda/interpreter/ptx_text.hpp"

namespace lockstep::ptx {

class Operands {
 public:
  explicit Operands(Kernel& kernel) : kernel_(kernel) {}

  // Each throws std::runtime_error, without a place.
  void declare(const std::string& text);    ///< ".reg .b32 %r<12>"
  void parameter(const std::string& text);  ///< ".param .u64 name"
  void shared(const std::string& text);     ///< ".shared .align 16 .b8 name[64]"
  /// The name of memory whose size a launch states. A kernel may have this or shared(), not both.
  void dynamic_shared(const std::string& name) { dynamic_.insert(name); }

  [[nodiscard]] Width width_of(const std::string& name) const;
  Row named(const std::string& name);                     ///< a register of any width
  Row of_width(const std::string& operand, Width width);  ///< a register or a constant
  /// "[%rd3+8]": the row of the address, and the offset. Addresses in shared memory have 32 bits.
  std::pair<Row, s64> address(const std::string& operand, Width width);

 private:
  struct Register {
    Row row;
    Width width;
  };
  Row new_row(Width width);
  Row constant(Width width, u64 value, bool is_parameter = false);
  [[nodiscard]] static u64 value_of(const std::string& text, Width width);

  Kernel& kernel_;
  std::map<std::string, Width> widths_;  ///< of registers, by name without number
  std::map<std::string, Register> registers_;
  std::map<std::string, std::size_t> parameters_, shared_;
  std::set<std::string> dynamic_;
  std::map<std::pair<Width, u64>, Row> constants_;
  std::map<u64, Row> parameter_rows_;
};

}  // namespace lockstep::ptx
