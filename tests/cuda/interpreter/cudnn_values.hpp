// Tensors as kernels of cuDNN compute with them: in fp32, in the order of their sizes, whatever they are in memory.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "cuda/interpreter/cudnn_descriptors.hpp"
#include "cuda/interpreter/library_elements.hpp"

namespace lockstep::ptx {

using CudnnValues = std::vector<float>;

inline constexpr const char* kCudnnWho = "a kernel of cuDNN";  ///< accesses memory, for messages

[[nodiscard]] constexpr std::size_t cudnn_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

[[nodiscard]] CudnnValues read_tensor(LibraryOperands& on, const CudnnTensor& tensor, const void* memory);
void write_tensor(LibraryOperands& on, const CudnnTensor& tensor, void* memory, const CudnnValues& values);

/// Of a tensor whose sizes are 1 or those of `all`: which of its values belongs to value `i` of `all`.
[[nodiscard]] std::size_t place_of_broadcast(std::size_t i, const CudnnTensor& all, const CudnnTensor& of);

/// A sum, whose terms come in parts: each added up first, where that is wanted.
class CudnnSum {
 public:
  explicit CudnnSum(bool in_parts) : in_parts_(in_parts) {}
  void add(float term) { (in_parts_ ? part_ : all_) += term; }
  void end_part() { all_ += std::exchange(part_, 0.0F); }
  [[nodiscard]] float value() const { return all_; }

 private:
  bool in_parts_;
  float all_ = 0, part_ = 0;
};

}  // namespace lockstep::ptx
