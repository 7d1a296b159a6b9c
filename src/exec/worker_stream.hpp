// WorkerStream: what the kernels of one worker run on, and what a program needs beside them. Of the CPU it is the
// thread that calls, which is done when a call returns; of a GPU a stream, on which calls are launched in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "lockstep/op.hpp"
#include "ops/upcast.hpp"

namespace lockstep::exec {

/// As Casts it casts the operands of low precision. Memory is the device's.
class WorkerStream : public ops::Casts {
 public:
  /// Memory for the activations of a program, at least so many bytes, 64-byte aligned. A worker of a GPU has one block
  /// for all of its programs: it may have moved since the last call, and what another program wrote is lost.
  [[nodiscard]] virtual std::byte* reserve_arena(std::size_t bytes) = 0;
  /// What kernels are called with; null on the CPU.
  [[nodiscard]] virtual void* of_kernels() { return nullptr; }
  /// What follows belongs to this layer of this step: for errors.
  virtual void enter(std::uint64_t /*step*/, const std::string& /*layer*/) {}
  /// sum[i] = left[i] + right[i], added in float32. `sum` may be one of them.
  virtual void add(DType dtype, const void* left, const void* right, void* sum, std::int64_t n) = 0;
  /// values[i] *= *factor
  virtual void scale(float* values, const float* factor, std::int64_t n) = 0;
};

}  // namespace lockstep::exec
