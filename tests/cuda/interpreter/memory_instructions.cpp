#include "cuda/interpreter/memory_instructions.hpp"

#include <array>
#include <cstring>
#include <map>
#include <string_view>

#include "cuda/interpreter/warp.hpp"

namespace lockstep::ptx {

namespace {

template <class Visit>
void each_active(u32 active, const Visit& visit) {
  for (; active != 0; active &= active - 1) visit(static_cast<u32>(std::countr_zero(active)));
}

/// Values narrower than the register are extended: signed ones with their sign.
template <class Register, class Value>
Register extended(const u8* from) {
  Value value{};
  if (from != nullptr) std::memcpy(&value, from, sizeof value);
  return static_cast<Register>(value);
}

// Each kind of memory, by how a lane gets at its bytes; null: it must not.
struct Global {
  using Address = u64;
  static constexpr auto kReadable = &Warp::readable;
  static constexpr auto kWritable = &Warp::writable;
};
struct Parameters {
  using Address = u64;
  static constexpr auto kReadable = &Warp::parameter;
};
struct Shared {
  using Address = u32;
  static constexpr auto kReadable = &Warp::shared_readable;
  static constexpr auto kWritable = &Warp::shared_writable;
};

template <class Memory, class Register, class Value>
void load(Warp& warp, const Instruction& instruction, u32 active) {
  const auto* const addresses = warp.row<typename Memory::Address>(instruction.from[0]);
  auto* const to = warp.row<Register>(instruction.to);
  each_active(active, [&](u32 lane) {
    const u64 address = addresses[lane] + static_cast<u64>(instruction.offset);
    to[lane] = extended<Register, Value>((warp.*Memory::kReadable)(instruction, lane, address, sizeof(Value)));
  });
}

template <class Memory, class Register, class Value>
void store(Warp& warp, const Instruction& instruction, u32 active) {
  const auto* const addresses = warp.row<typename Memory::Address>(instruction.from[0]);
  const auto* const from = warp.row<Register>(instruction.from[1]);
  each_active(active, [&](u32 lane) {
    const u64 address = addresses[lane] + static_cast<u64>(instruction.offset);
    const auto value = static_cast<Value>(from[lane]);
    u8* const to = (warp.*Memory::kWritable)(instruction, lane, address, sizeof value);
    if (to != nullptr) std::memcpy(to, &value, sizeof value);
  });
}

/// The elements of a vector are one access, aligned to its whole size.
template <class Value>
std::size_t vector_bytes(const Instruction& instruction) {
  return (instruction.vector[2] == kNoRow ? 2 : 4) * sizeof(Value);
}

template <class Memory, class Register, class Value>
void load_vector(Warp& warp, const Instruction& instruction, u32 active) {
  const std::size_t bytes = vector_bytes<Value>(instruction);
  // The address may stand in a register that is loaded.
  std::array<typename Memory::Address, kLanes> addresses{};
  std::memcpy(addresses.data(), warp.row<typename Memory::Address>(instruction.from[0]), sizeof addresses);
  each_active(active, [&](u32 lane) {
    const u64 address = addresses[lane] + static_cast<u64>(instruction.offset);
    const u8* const from = (warp.*Memory::kReadable)(instruction, lane, address, bytes);
    for (std::size_t i = 0; i < bytes / sizeof(Value); ++i) {
      const u8* const element = from == nullptr ? nullptr : from + i * sizeof(Value);
      warp.row<Register>(instruction.vector[i])[lane] = extended<Register, Value>(element);
    }
  });
}

template <class Memory, class Register, class Value>
void store_vector(Warp& warp, const Instruction& instruction, u32 active) {
  const std::size_t bytes = vector_bytes<Value>(instruction);
  const auto* const addresses = warp.row<typename Memory::Address>(instruction.from[0]);
  each_active(active, [&](u32 lane) {
    const u64 address = addresses[lane] + static_cast<u64>(instruction.offset);
    u8* const to = (warp.*Memory::kWritable)(instruction, lane, address, bytes);
    for (std::size_t i = 0; to != nullptr && i < bytes / sizeof(Value); ++i) {
      const auto value = static_cast<Value>(warp.row<Register>(instruction.vector[i])[lane]);
      std::memcpy(to + i * sizeof value, &value, sizeof value);
    }
  });
}

/// The old value goes to the register.
template <class Function>
void update_global(Warp& warp, const Instruction& instruction, u32 active, const Function& function) {
  const u64* const addresses = warp.row<u64>(instruction.from[0]);
  const auto* const from = warp.row<u32>(instruction.from[1]);
  auto* const to = warp.row<u32>(instruction.to);
  each_active(active, [&](u32 lane) {
    const u64 address = addresses[lane] + static_cast<u64>(instruction.offset);
    u8* const at = warp.atomically(instruction, lane, address, sizeof(u32));
    const u32 before = extended<u32, u32>(at), after = function(before, from[lane]);
    if (at != nullptr) std::memcpy(at, &after, sizeof after);
    to[lane] = before;
  });
}

struct Runs {
  Run load = nullptr, store = nullptr, load_vector = nullptr, store_vector = nullptr;
};
struct AllRuns {
  Runs global, parameters, shared;
};
template <class Memory, class Register, class Value>
constexpr Runs runs_in() {
  return {load<Memory, Register, Value>, store<Memory, Register, Value>, load_vector<Memory, Register, Value>,
          store_vector<Memory, Register, Value>};
}
template <class Register, class Value>
constexpr AllRuns runs_of() {
  AllRuns all{runs_in<Global, Register, Value>(), {}, {}};
  all.parameters.load = load<Parameters, Register, Value>;
  if constexpr (sizeof(Value) >= SharedMemory::kWord) all.shared = runs_in<Shared, Register, Value>();
  return all;
}

/// A register is at least as wide as the value ("Operand Size Exceeding Instruction-Type Size").
template <class Register>
const AllRuns* runs_for(std::string_view type) {
  static const std::map<std::string_view, AllRuns> narrow = {
      {"u8", runs_of<Register, u8>()},   {"b8", runs_of<Register, u8>()},   {"s8", runs_of<Register, s8>()},
      {"u16", runs_of<Register, u16>()}, {"b16", runs_of<Register, u16>()}, {"s16", runs_of<Register, s16>()},
  };
  static const std::map<std::string_view, AllRuns> words = {
      {"u32", runs_of<Register, u32>()},
      {"b32", runs_of<Register, u32>()},
      {"f32", runs_of<Register, u32>()},
      {"s32", runs_of<Register, s32>()},
  };
  static const std::map<std::string_view, AllRuns> long_words = {
      {"u64", runs_of<Register, u64>()},
      {"b64", runs_of<Register, u64>()},
      {"f64", runs_of<Register, u64>()},
      {"s64", runs_of<Register, s64>()},
  };
  if (const auto found = narrow.find(type); found != narrow.end()) return &found->second;
  if constexpr (sizeof(Register) >= 4) {
    if (const auto found = words.find(type); found != words.end()) return &found->second;
  }
  if constexpr (sizeof(Register) >= 8) {
    if (const auto found = long_words.find(type); found != long_words.end()) return &found->second;
  }
  return nullptr;
}

const AllRuns* runs_for(std::string_view type, Width width) {
  switch (width) {
    case Width::bits16:
      return runs_for<u16>(type);
    case Width::bits32:
      return runs_for<u32>(type);
    case Width::bits64:
      return runs_for<u64>(type);
    case Width::predicate:
      break;
  }
  return nullptr;
}

}  // namespace

bool accesses_memory(const std::string& name) {
  return name.starts_with("ld.") || name.starts_with("st.") || name.starts_with("atom.");
}

MemoryMeaning memory_meaning(const std::string& name, Width of_register) {
  using Form = MemoryMeaning::Form;
  if (name == "atom.global.or.b32") {
    return {[](Warp& warp, const Instruction& instruction, u32 active) {
              update_global(warp, instruction, active, [](u32 a, u32 b) { return a | b; });
            },
            Form::update};
  }
  const auto dot = name.rfind('.');
  std::string access = name.substr(0, dot);
  std::size_t elements = 1;
  if (access.ends_with(".v2") || access.ends_with(".v4")) {
    elements = access.back() == '2' ? 2 : 4;
    access.resize(access.size() - 3);
  }
  const AllRuns* const all = runs_for(std::string_view(name).substr(dot + 1), of_register);
  const bool loads = access.starts_with("ld"),
             is_global = access == "ld" || access == "st" || access == "ld.global" || access == "st.global";
  const bool is_shared = access == "ld.shared" || access == "st.shared";
  if (all == nullptr || (!is_global && !is_shared && access != "ld.param")) return {};
  const Runs& runs = is_global ? all->global : is_shared ? all->shared : all->parameters;
  const Run single = loads ? runs.load : runs.store, vector = loads ? runs.load_vector : runs.store_vector;
  return {elements > 1 ? vector : single, loads ? Form::load : Form::store, elements,
          is_shared ? Width::bits32 : Width::bits64};
}

}  // namespace lockstep::ptx
