// What a graph of cuDNN computes, taken out of its descriptors: convolutions, and what is done with their sums behind
// them, point by point. Everything between two operations is in fp32 and in no memory.
#pragma once

#include <cudnn.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cuda/interpreter/library_elements.hpp"

namespace lockstep::ptx {

/// An object of cuDNN's backend: what was said of it, by attribute.
struct CudnnDescriptor {
  struct Attribute {
    cudnnBackendAttributeType_t type{};
    std::int64_t count = 0;
    std::vector<u8> bytes;
    std::vector<std::shared_ptr<CudnnDescriptor>> of;  ///< instead of bytes, where the values are descriptors
  };
  cudnnBackendDescriptorType_t type{};
  bool finalized = false;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes;
};

/// A value of an attribute, or this one.
template <class Value>
[[nodiscard]] std::vector<Value> values_of(const CudnnDescriptor& of, cudnnBackendAttributeName_t name);
[[nodiscard]] std::shared_ptr<CudnnDescriptor> descriptor_of(const CudnnDescriptor& of,
                                                             cudnnBackendAttributeName_t name);

struct CudnnTensor {
  std::int64_t uid = 0;
  Element element = Element::fp32;
  bool is_virtual = false;  ///< it is in no memory
  std::int64_t alignment = 1;
  std::vector<std::int64_t> sizes, strides;

  [[nodiscard]] std::int64_t elements() const;
};

struct CudnnOperation {
  enum class Kind : u8 { output, image_gradient, weight_gradient, add, relu, identity };
  using Axes = std::array<std::int64_t, 2>;  ///< height and width

  Kind kind = Kind::identity;
  /// As the direction of a convolution has them: image and weight; the output's gradient and the weight; the output's
  /// gradient and the image. Of what is done point by point: the operand, and what is added to it.
  std::int64_t first = 0, second = 0;
  std::int64_t result = 0;
  Axes before{}, after{}, stride{}, dilation{};

  [[nodiscard]] bool is_convolution() const { return kind <= Kind::weight_gradient; }
};

struct CudnnProgram {
  std::map<std::int64_t, CudnnTensor> tensors;
  std::vector<CudnnOperation> operations;

  /// Throws std::runtime_error that says what isn't known.
  [[nodiscard]] static CudnnProgram of(const CudnnDescriptor& graph);
  /// The sums of the convolution.
  [[nodiscard]] const CudnnTensor& sums() const { return tensors.at(operations.at(0).result); }
  [[nodiscard]] bool has(CudnnOperation::Kind kind) const;
  [[nodiscard]] bool is_low_precision() const;
  /// Why no engine computes it; empty: one does.
  [[nodiscard]] std::string refusal() const;
};

/// How a program is computed. They differ in bits, or in what they say of themselves.
enum class CudnnEngine : u8 {
  unordered,     ///< says that its sums have no order
  tensor_cores,  ///< rounds factors in fp32 to TF32
  greedy,        ///< wants a workspace of a TiB
  in_parts,      ///< adds each place of the window, or each image, up first; sums lie in the workspace, in fp32
  plain          ///< one after the other; no workspace
};
inline constexpr std::array kCudnnEngines = {CudnnEngine::unordered, CudnnEngine::tensor_cores, CudnnEngine::greedy,
                                             CudnnEngine::in_parts, CudnnEngine::plain};
[[nodiscard]] std::int64_t workspace_bytes(const CudnnProgram& program, CudnnEngine engine);

/// On a stream: `memory`, by the numbers of tensors.
class CudnnKernel final : public LibraryKernel {
 public:
  CudnnKernel(std::shared_ptr<const CudnnProgram> program, CudnnEngine engine, std::map<std::int64_t, void*> memory,
              void* workspace)
      : program_(std::move(program)), engine_(engine), memory_(std::move(memory)), workspace_(workspace) {}
  bool run(LibraryMemory& memory) override;
  [[nodiscard]] LibraryCost cost() const override;

 private:
  std::shared_ptr<const CudnnProgram> program_;
  CudnnEngine engine_;
  std::map<std::int64_t, void*> memory_;
  void* workspace_;
};

}  // namespace lockstep::ptx
