// What a graph of cuDNN computes, taken out of its descriptors, and the engines that compute it here.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cuda/interpreter/cudnn_descriptors.hpp"
#include "cuda/interpreter/library_kernel.hpp"

namespace lockstep::ptx {

/// How a program is computed. They differ in bits, or in what they say of themselves.
enum class CudnnEngine : u8 {
  unordered,     ///< says that its sums have no order
  tensor_cores,  ///< rounds factors in fp32 to TF32
  greedy,        ///< wants a workspace of a TiB
  in_parts,      ///< adds parts of each sum up first; sums lie in the workspace, in fp32
  plain          ///< one term after the other; no workspace
};
inline constexpr std::int64_t kGreedyBytes = std::int64_t{1} << 40;

/// What lies where: tensors by their numbers, and the values of those that are passed by value.
struct CudnnOperands {
  std::map<std::int64_t, void*> memory;
  std::map<std::int64_t, float> values;
  void* workspace = nullptr;
};

class CudnnProgram : public std::enable_shared_from_this<CudnnProgram> {
 public:
  using Tensors = std::map<std::int64_t, CudnnTensor>;  ///< by their numbers

  /// Throws std::runtime_error that says what isn't known.
  [[nodiscard]] static std::shared_ptr<const CudnnProgram> of(const CudnnDescriptor& graph);

  CudnnProgram() = default;
  CudnnProgram(const CudnnProgram&) = delete;
  CudnnProgram& operator=(const CudnnProgram&) = delete;
  virtual ~CudnnProgram() = default;

  [[nodiscard]] const Tensors& tensors() const { return tensors_; }
  [[nodiscard]] const CudnnTensor& tensor(std::int64_t uid) const { return tensors_.at(uid); }
  /// Why no engine computes it; empty: one does.
  [[nodiscard]] virtual std::string refusal() const = 0;
  /// The best first.
  [[nodiscard]] virtual std::vector<CudnnEngine> engines() const = 0;
  [[nodiscard]] virtual std::vector<cudnnBackendNumericalNote_t> notes(CudnnEngine engine) const = 0;
  [[nodiscard]] virtual std::int64_t workspace_bytes(CudnnEngine engine) const = 0;
  /// Images or sequences.
  [[nodiscard]] virtual std::int64_t samples() const = 0;
  [[nodiscard]] virtual std::shared_ptr<LibraryKernel> kernel(CudnnEngine engine, CudnnOperands operands) const = 0;

 protected:
  /// Bytes of all tensors that are in memory.
  [[nodiscard]] f64 bytes_in_memory() const;

  Tensors tensors_;
};

/// Keeps the tensor that an attribute describes; returns its number.
std::int64_t add_tensor(CudnnProgram::Tensors& to, const CudnnDescriptor& of, cudnnBackendAttributeName_t name);

}  // namespace lockstep::ptx
