// A block's shared memory, and what is known of each of its words: whether it was written since the block began, and
// who accessed it last. Two accesses of different threads, one of them a write, are ordered by a barrier of the block,
// and by nothing else: no kernel of ours has shared memory that belongs to one warp. Only whole words are known.
#pragma once

#include <cstddef>
#include <vector>

#include "cuda/interpreter/types.hpp"

namespace lockstep::ptx {

class SharedMemory {
 public:
  static constexpr u64 kWord = 4;

  explicit SharedMemory(std::size_t bytes) : bytes_(bytes), words_((bytes + kWord - 1) / kWord) {}

  /// Nothing is written, and nothing that came before is seen.
  void begin_block() { begun_ = ++time_; }
  /// A barrier of all the block's threads.
  void barrier() { ++time_; }
  [[nodiscard]] bool holds(u64 at, std::size_t count) const {
    return at <= bytes_.size() && count <= bytes_.size() - at;
  }
  [[nodiscard]] u8* data(u64 at) { return bytes_.data() + at; }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  /// Records an access to words that are there, and returns what is wrong with it; null: nothing.
  const char* touch(u64 at, std::size_t count, bool writes, u32 thread) {
    const char* wrong = nullptr;
    for (u64 word = at / kWord; word < (at + count + kWord - 1) / kWord; ++word) {
      const char* const found = writes ? write(words_[word], thread) : read(words_[word], thread);
      if (found != nullptr) wrong = found;
    }
    return wrong;
  }

 private:
  struct Word {
    u64 written = 0, read = 0;  ///< times; 0: never
    u32 writer = 0, reader = 0;
    bool several = false;  ///< readers
  };

  const char* write(Word& word, u32 thread) const {
    const char* wrong = nullptr;
    if (word.written == time_ && word.writer != thread) wrong = "races: writes what another thread of the block writes";
    if (word.read == time_ && (word.several || word.reader != thread))
      wrong = "races: writes what another thread of the block reads";
    word.written = time_;
    word.writer = thread;
    return wrong;
  }
  const char* read(Word& word, u32 thread) const {
    const char* wrong = nullptr;
    if (word.written < begun_) wrong = "reads shared memory that no thread of the block wrote";
    if (word.written == time_ && word.writer != thread) wrong = "races: reads what another thread of the block writes";
    word.several = word.read == time_ && (word.several || word.reader != thread);
    word.read = time_;
    word.reader = thread;
    return wrong;
  }

  std::vector<u8> bytes_;
  std::vector<Word> words_;
  u64 time_ = 0, begun_ = 0;
};

}  // namespace lockstep::ptx
