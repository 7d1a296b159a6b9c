// CheckpointReader: reads a checkpoint on all ranks together. Each file is read and verified once, by one rank, while
// other ranks read other files; then it is sent to all. So a start takes as long as the largest share, not as the whole
// checkpoint, and the file system delivers each byte once.
//
// A rank holds its share in memory until it is sent: about the checkpoint's bytes divided by the number of ranks, as
// much as CheckpointWriter needs later. Ranks that have different parts of a model receive the same files.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "comm/transport/work_together.hpp"
#include "lockstep/communicator.hpp"
#include "run/checkpoint/checkpoint.hpp"

namespace lockstep::checkpoint {

class CheckpointReader {
 public:
  /// `timeout`: for messages between the ranks; reading may take longer, unless `stop` asks for an end.
  CheckpointReader(Communicator& communicator, std::chrono::milliseconds timeout, comm::StopPoll stop = {})
      : communicator_(communicator), timeout_(timeout), stop_(std::move(stop)) {}

  /// Collective; the checkpoint must be the same on all ranks. Returns problems with its files, the same on every rank:
  /// the first fault of each rank's share, at most kMaxFaults; empty if it is intact. Throws Error(infrastructure) on a
  /// rank that cannot read a file, Error(interrupted) on all ranks if stopped.
  [[nodiscard]] std::vector<std::string> read(const Checkpoint& checkpoint);

  /// Collective, after a read() without faults: fills the targets of every rank, which may differ. Throws Error(data)
  /// on all ranks if a tensor that one of them needs is missing or of another shape.
  void load(const Checkpoint& checkpoint, const Targets& targets);

  /// Files that this rank has read, by name.
  const std::map<std::string, SafetensorsFile>& own() const { return own_; }

  static constexpr std::size_t kMaxFaults = 8;

 private:
  using Copies = std::map<std::string, std::vector<Copy>>;  ///< by file
  Operation operation(const Checkpoint& checkpoint) const;
  std::vector<std::string> needed_files(const Checkpoint& checkpoint, const Copies& copies,
                                        const std::string& fault) const;
  void hand_out(std::string& bytes, int from, const Operation& operation) const;

  Communicator& communicator_;
  std::chrono::milliseconds timeout_;
  comm::StopPoll stop_;
  std::map<std::string, int> reader_of_;  ///< the rank that reads a file
  std::map<std::string, SafetensorsFile> own_;
};

}  // namespace lockstep::checkpoint
