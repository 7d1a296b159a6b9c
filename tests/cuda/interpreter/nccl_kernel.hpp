// The effect of a group of NCCL calls on the GPU: one kernel, in which all calls progress concurrently.
#pragma once

#include <memory>
#include <vector>

#include "cuda/interpreter/nccl_communicator.hpp"

namespace lockstep::ptx {

class GroupKernel final : public LibraryKernel {
 public:
  /// Numbers within the communicator: that of the group, and of the first of its collectives.
  GroupKernel(std::shared_ptr<NcclCommunicator> communicator, std::vector<NcclCall> calls, u64 group, u64 collective);
  bool run(LibraryMemory& memory) override;

 private:
  /// What a call still waits for: the next frame from this rank.
  struct Awaited {
    std::size_t call = 0;
    int from = 0;
    Frame frame;
  };
  struct Sent {
    int to = 0;
    u64 number = 0;
  };

  void begin(LibraryMemory& memory);
  void begin(LibraryMemory& memory, std::size_t call);
  void send(int to, const Frame& frame, const u8* bytes);
  /// Whether the first arrived frame matches, and was taken.
  bool take(LibraryMemory& memory, const Awaited& awaited);
  /// For ncclAllReduce: when all terms have arrived.
  void add(LibraryMemory& memory, std::size_t call);
  [[nodiscard]] bool all_taken() const;

  std::shared_ptr<NcclCommunicator> communicator_;
  std::vector<NcclCall> calls_;
  u64 group_, collective_;
  bool begun_ = false, stuck_ = false;
  std::vector<Awaited> awaited_;
  std::vector<Sent> sent_;
  std::vector<std::vector<std::vector<float>>> terms_;  ///< by call, by rank: of an ncclAllReduce
};

}  // namespace lockstep::ptx
