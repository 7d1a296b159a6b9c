// Loads, stores and atomic operations (PTX ISA 9.0: "ld", "st", "atom"): by their name and the width of their register,
// which may be wider than the value in memory. A generic address is one of global memory: the module's kernels take
// addresses of no other kind. Addresses in shared memory have 32 bits; what is narrower than that is not known there.
#pragma once

#include <string>

#include "cuda/interpreter/program.hpp"

namespace lockstep::ptx {

struct MemoryMeaning {
  Run run = nullptr;  ///< null: unknown
  enum class Form : u8 { load, store, update } form = Form::load;
  std::size_t elements = 1;  ///< of a vector: 2 or 4
  Width address = Width::bits64;
};

/// Whether the instruction with this name accesses memory at all.
bool accesses_memory(const std::string& name);
MemoryMeaning memory_meaning(const std::string& name, Width of_register);

}  // namespace lockstep::ptx
