// A block's shared memory, and what is known of each of its words: whether it was written since the block began, and
// who accessed it last. Two accesses of different threads, one of them a write, are ordered by a barrier of the block,
// or, if they are of one warp, by one of both lanes. Only whole words are known.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

#include "cuda/interpreter/shadow.hpp"
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
  /// Records an access to words that are there, and returns what is wrong with it; null: nothing. `by.warp`: of the
  /// launch.
  const char* touch(u64 at, std::size_t count, bool writes, const Toucher& by) {
    const char* wrong = nullptr;
    for (u64 word = at / kWord; word < (at + count + kWord - 1) / kWord; ++word) {
      const char* const found = writes ? write(words_[word], by) : read(words_[word], by);
      if (found != nullptr) wrong = found;
    }
    return wrong;
  }

 private:
  struct Word {
    u64 written = 0, read = 0;             ///< times; 0: never
    u32 writer_warp = 0, reader_warp = 0;  ///< the reader's: kSeveral if there were several
    u32 writer_time = 0, reader_time = 0;  ///< their warps' own; the readers': the last
    u32 readers = 0;                       ///< lanes
    u8 writer = 0;                         ///< a lane
  };

  [[nodiscard]] bool is_after_write(const Word& word, const Toucher& by) const {
    return word.written != time_ || (word.writer_warp == by.warp && by.is_after_lane(word.writer, word.writer_time));
  }
  [[nodiscard]] bool is_after_reads(const Word& word, const Toucher& by) const {
    if (word.read != time_) return true;
    if (word.reader_warp != by.warp) return false;
    for (u32 lanes = word.readers; lanes != 0; lanes &= lanes - 1) {
      if (!by.is_after_lane(static_cast<u32>(std::countr_zero(lanes)), word.reader_time)) return false;
    }
    return true;
  }
  const char* write(Word& word, const Toucher& by) const {
    const char* wrong = nullptr;
    if (!is_after_write(word, by)) wrong = "races: writes what another thread of the block writes";
    if (!is_after_reads(word, by)) wrong = "races: writes what another thread of the block reads";
    word.written = time_;
    word.writer_warp = by.warp;
    word.writer = static_cast<u8>(by.lane);
    word.writer_time = by.now();
    return wrong;
  }
  const char* read(Word& word, const Toucher& by) const {
    const char* wrong = nullptr;
    if (word.written < begun_) wrong = "reads shared memory that no thread of the block wrote";
    if (!is_after_write(word, by)) wrong = "races: reads what another thread of the block writes";
    const u32 mine = 1U << by.lane;
    if (is_after_reads(word, by)) {
      word.reader_warp = by.warp;
      word.readers = mine;
      word.reader_time = by.now();
    } else {
      if (word.reader_warp != by.warp) word.reader_warp = kSeveral;
      word.readers |= mine;
      word.reader_time = std::max(word.reader_time, by.now());
    }
    word.read = time_;
    return wrong;
  }

  static constexpr u32 kSeveral = 0xffffffffU;  ///< no warp has this number

  std::vector<u8> bytes_;
  std::vector<Word> words_;
  u64 time_ = 0, begun_ = 0;
};

}  // namespace lockstep::ptx
