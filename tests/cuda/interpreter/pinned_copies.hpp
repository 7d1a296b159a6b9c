// What the host does with pinned memory while copies use it, of which nothing is seen: it must not write what a copy to
// the GPU reads, nor read or write what a copy to the host writes, from when the copy is put on a stream until the host
// has waited for it. So what a copy reads is compared with what was there when it was put; and what a copy will write
// is filled with junk at once, so that a host that does not wait gets other results.
#pragma once

#include <list>

#include "cuda/interpreter/memory.hpp"
#include "cuda/interpreter/problems.hpp"

namespace lockstep::ptx {

class PinnedCopies {
 public:
  struct Pending {
    u64 first = 0;
    std::size_t bytes = 0;
    bool writes = false;
    bool compared = false;  ///< what is read: no copy before it writes there
    u64 digest = 0;
  };
  using Token = std::list<Pending>::iterator;

  /// A copy is put on a stream. Its memory need not be pinned, nor be there.
  Token put(Memory& memory, u64 address, std::size_t bytes, bool writes);
  /// It is about to be done.
  void done(Memory& memory, Problems& problems, Token copy);

 private:
  [[nodiscard]] bool overlaps(u64 address, std::size_t bytes, bool writes) const;
  std::list<Pending> pending_;
};

}  // namespace lockstep::ptx
