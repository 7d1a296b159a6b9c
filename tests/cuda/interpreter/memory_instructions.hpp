// Loads, stores and atomic operations (PTX ISA 9.0: "ld", "st", "atom"): by their name and the width of their
// register, which may be wider than what lies in memory. A generic address is one of global memory: the module's
// kernels have no other that they take the address of.
#pragma once

#include <string>

#include "cuda/interpreter/program.hpp"

namespace lockstep::ptx {

struct MemoryMeaning {
  Run run = nullptr;  ///< null: not known
  enum class Form : u8 { load, store, update } form = Form::load;
};

/// Whether such a name is a memory access at all.
bool accesses_memory(const std::string& name);
MemoryMeaning memory_meaning(const std::string& name, Width of_register);

}  // namespace lockstep::ptx
