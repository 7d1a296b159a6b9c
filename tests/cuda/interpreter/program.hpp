// The decoded form of a kernel's PTX: instructions that name rows of a warp's registers by their location.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "cuda/interpreter/types.hpp"

namespace lockstep::ptx {

class Warp;
struct Instruction;

/// The effect of an instruction on the active lanes.
using Run = void (*)(Warp& warp, const Instruction& instruction, u32 active);

/// How an instruction changes which one comes next.
enum class Flow : u8 { straight, branch, leave, barrier, shuffle, block_barrier };

/// A register, by the byte of the register file at which its row starts.
using Row = u32;
inline constexpr Row kNoRow = 0xffffffffU;

struct Instruction {
  Run run = nullptr;  ///< null: `flow` says everything
  Flow flow = Flow::straight;
  bool unless = false;                                      ///< the guard is negated: @!%p
  bool butterfly = false;                                   ///< a shuffle's mode; otherwise by index
  Row guard = kNoRow;                                       ///< a predicate
  Row to = kNoRow;                                          ///< the destination
  Row found = kNoRow;                                       ///< a shuffle's second destination
  std::array<Row, 4> from{kNoRow, kNoRow, kNoRow, kNoRow};  ///< the sources, in PTX's order
  std::array<Row, 4> vector{kNoRow, kNoRow, kNoRow,
                            kNoRow};  ///< what a vector access loads or stores, element by element
  s64 offset = 0;                     ///< of a memory access
  u32 target = 0;                     ///< of a branch: the instruction's index
};

struct Statement {
  int line = 0;
  std::string text;
};

struct Parameter {
  std::size_t at = 0, bytes = 0;
};

/// A row that is set before a launch: all lanes have the same value.
struct Constant {
  Row row = kNoRow;
  Width width = Width::bits32;
  u64 value = 0;
  bool is_parameter = false;  ///< `value` is an offset among the parameters, to which their address is to be added
};

struct Kernel {
  std::string name, file;
  std::vector<Parameter> parameters;
  std::size_t parameter_bytes = 0;
  u32 max_threads = 1024;
  std::size_t shared_bytes = 0;     ///< of a block
  bool has_dynamic_shared = false;  ///< a launch states how many bytes
  bool has_block_barriers = false;
  std::vector<Instruction> code;      ///< the last one ends the kernel
  std::vector<Statement> statements;  ///< of each instruction
  std::vector<Constant> constants;
  std::size_t register_bytes = 0;
  std::map<std::string, Row> specials;  ///< %tid.x and the like, if they are read
};

}  // namespace lockstep::ptx
