#include "cuda/interpreter/shared_memory.hpp"

namespace lockstep::ptx {

const char* SharedMemory::touch(u64 at, std::size_t count, bool writes, u32 thread) {
  const char* wrong = nullptr;
  for (u64 word = at / kWord; word < (at + count + kWord - 1) / kWord; ++word) {
    Word& one = words_[word];
    const bool written_by_other = one.written == time_ && one.writer != thread;
    if (writes) {
      if (written_by_other) wrong = "races: writes what another thread of the block writes";
      if (one.read == time_ && (one.several || one.reader != thread))
        wrong = "races: writes what another thread of the block reads";
      one.written = time_;
      one.writer = thread;
    } else {
      if (one.written < begun_) wrong = "reads shared memory that no thread of the block wrote";
      if (written_by_other) wrong = "races: reads what another thread of the block writes";
      one.several = one.read == time_ && (one.several || one.reader != thread);
      one.read = time_;
      one.reader = thread;
    }
  }
  return wrong;
}

}  // namespace lockstep::ptx
