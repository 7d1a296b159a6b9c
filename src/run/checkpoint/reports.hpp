// What each writing rank reports to rank 0 when its files of a checkpoint are safe, or why they are not; before that,
// from time to time, that it goes on writing: a slow disk takes its time, only one that stands still is given up.
// Messages have a fixed size. Used by the writers' threads.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/spans.hpp"
#include "lockstep/communicator.hpp"
#include "run/checkpoint/layout.hpp"

namespace lockstep::checkpoint {

inline constexpr std::size_t kHashChars = 64;
using HashText = std::array<char, kHashChars>;

struct WriteReport {
  int rank = 0;
  std::string failure;           ///< empty: all files of this rank are safe
  std::vector<HashText> hashes;  ///< of this rank's files, in order: the header's, then each piece's
};

class WriteReports {
 public:
  WriteReports(Communicator& communicator, const std::vector<Part>& parts);

  /// Called on ranks other than 0 when one more file is written. `period`: of the messages about it.
  void goes_on(std::int64_t step, std::chrono::milliseconds period);
  /// Called on ranks other than 0.
  void send(std::int64_t step, const WriteReport& report, std::chrono::milliseconds timeout);
  /// Called on rank 0: the reports of all other ranks that write. If none of them writes any more, and some have not
  /// reported, after `timeout` the failures of these say so.
  [[nodiscard]] std::vector<WriteReport> receive(std::int64_t step, std::chrono::milliseconds timeout);
  /// From now on, waits are limited to this: the run is being torn down.
  void shorten_timeouts(std::chrono::milliseconds timeout) { shorter_timeout_ = timeout.count(); }

 private:
  struct Channel {  // to or from one rank; keeps the memory of an unfinished transfer until it is done
    int rank = 0;
    std::size_t hashes = 0;
    std::vector<std::byte> bytes;
    std::unique_ptr<Transfer> transfer;
  };
  std::chrono::milliseconds limit(std::chrono::milliseconds timeout) const;
  bool wait(Transfer* transfer, std::chrono::milliseconds timeout) const;
  [[nodiscard]] std::optional<std::int64_t> take(Channel& from, WriteReport& report);

  Communicator& communicator_;
  std::vector<Channel> channels_;  // rank 0: the other ranks that write; else: rank 0
  Clock::time_point went_on_ = Clock::now();
  std::atomic<std::int64_t> shorter_timeout_{-1};
};

}  // namespace lockstep::checkpoint
