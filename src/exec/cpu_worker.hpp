// CpuWorker: gradients are computed where they are reduced, in the buffers' own memory.
#pragma once

#include "exec/bucket_walk.hpp"
#include "exec/shard_runner.hpp"
#include "exec/shard_worker.hpp"

namespace lockstep::exec {

class CpuWorker final : public ShardWorker {
 public:
  CpuWorker(const Program& program, KernelSet kernels) : program_(program), runner_(program, std::move(kernels)) {
    buckets_.slots.resize(program.slots.size());
  }

  void run(const ShardCall& call) override;
  [[nodiscard]] const float* result(const Location& location) const override { return runner_.result(location); }

 private:
  const Program& program_;
  ShardRunner runner_;
  BucketMemory buckets_;
};

}  // namespace lockstep::exec
