// The GPU's memory and the host's pinned memory. Addresses are never reused, so an access to freed memory is recognized
// as such; between two allocations is a gap that belongs to none. The GPU's addresses are inaccessible pages: their
// contents are stored elsewhere, and a host that reads through such a pointer crashes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "cuda/interpreter/shadow.hpp"

namespace lockstep::ptx {

enum class Space : u8 { gpu, pinned };

struct Allocation {
  u64 address = 0;
  std::size_t bytes = 0;
  Space space = Space::gpu;
  u32 number = 0;  ///< from 1, in order
  bool freed = false;
  std::unique_ptr<u8[], void (*)(void*)> storage{nullptr, std::free};  ///< contents of GPU memory
  Shadow shadow;

  [[nodiscard]] bool holds(u64 at, std::size_t count) const {
    return at >= address && count <= bytes && at - address <= bytes - count;
  }
  [[nodiscard]] u8* data(u64 at) const {
    return space == Space::gpu ? storage.get() + (at - address) : reinterpret_cast<u8*>(at);
  }
};

class Memory {
 public:
  Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  /// From now on memory is zeros that take no room before they are written, and counts as written by what precedes.
  void make_sparse() { sparse_ = true; }
  /// Filled with junk. Null: no addresses are left.
  void* allocate(std::size_t bytes, Space space);
  /// Returns what is wrong with the call; empty: nothing.
  std::string free(void* memory, Space space);

  /// The live allocation that contains these bytes, or null.
  Allocation* find(u64 address, std::size_t bytes) {
    for (Allocation* const one : recent_) {
      if (one != nullptr && one->holds(address, bytes)) return one;
    }
    return look_up(address, bytes);
  }
  /// The location of such bytes, for a message: "12 bytes behind GPU allocation 3 of 64 bytes".
  [[nodiscard]] std::string describe(u64 address, std::size_t bytes) const;
  /// What was never freed; empty: nothing.
  [[nodiscard]] std::string leaks() const;
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  struct Reserve {
    u64 first = 0, next = 0;
  };
  Allocation* look_up(u64 address, std::size_t bytes);
  [[nodiscard]] const Allocation* nearest(u64 address) const;

  Reserve gpu_, pinned_;
  std::map<u64, Allocation> allocations_;  ///< including freed ones
  std::array<Allocation*, 4> recent_{};    ///< found last: a kernel's tensors
  std::size_t looked_up_ = 0;
  std::size_t used_ = 0;  ///< of the GPU's
  bool sparse_ = false;
};

}  // namespace lockstep::ptx
