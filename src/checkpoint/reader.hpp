// CheckpointReader: reads a checkpoint on all ranks together. Each file is read and verified once, by one rank, all
// ranks at the same time; then it goes from there to everyone. So a start takes as long as the largest part, not as
// the whole checkpoint, and a file system serves each byte once.
//
// A rank holds its part in memory until it is sent: about the checkpoint's bytes divided by the ranks, as much as
// CheckpointWriter takes later. Ranks that have different parts of a model go through the same files.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::checkpoint {

class CheckpointReader {
 public:
  /// `timeout`: of messages between the ranks; reading may take longer.
  CheckpointReader(Communicator& communicator, std::chrono::milliseconds timeout)
      : communicator_(communicator), timeout_(timeout) {}

  /// Collective; the checkpoint is the same on all ranks. Returns what is wrong with its files, the same on every rank:
  /// the first fault of each rank's part, at most kMaxFaults; empty when all is well. Throws Error(infrastructure) on
  /// a rank that cannot read a file.
  [[nodiscard]] std::vector<std::string> read(const Checkpoint& checkpoint);

  /// Collective, after a read() that found nothing wrong: fills the targets of every rank, which may have different
  /// ones. Throws Error(data) on all ranks when a tensor that one of them needs is missing or of another shape.
  void load(const Checkpoint& checkpoint, const Targets& targets);

  /// Files that this rank has read, by name.
  [[nodiscard]] const std::map<std::string, SafetensorsFile>& own() const { return own_; }

  static constexpr std::size_t kMaxFaults = 8;

 private:
  using Copies = std::map<std::string, std::vector<Copy>>;  ///< by file
  [[nodiscard]] Operation operation(const Checkpoint& checkpoint) const;
  [[nodiscard]] std::string reported_by(int rank, std::string text, const Operation& operation) const;
  [[nodiscard]] std::vector<std::string> needed_files(const Checkpoint& checkpoint, const Copies& copies,
                                                      const std::string& fault) const;
  void hand_out(std::string& bytes, int from, const Operation& operation) const;

  Communicator& communicator_;
  std::chrono::milliseconds timeout_;
  std::map<std::string, int> reader_of_;  ///< which rank reads a file
  std::map<std::string, SafetensorsFile> own_;
};

}  // namespace lockstep::checkpoint
