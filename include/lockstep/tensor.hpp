// Tensors on the host: element types, shapes, and an owning, 64-byte aligned buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

enum class DType : std::uint8_t { f32, bf16, f16, f64, i64, i32, u16, u8 };

[[nodiscard]] std::size_t size_of(DType dtype);       ///< bytes
[[nodiscard]] std::string_view name_of(DType dtype);  ///< "bf16"

using Shape = std::vector<std::int64_t>;

[[nodiscard]] std::int64_t elements(const Shape& shape);  ///< 1 for a scalar (empty shape)
[[nodiscard]] std::string to_string(const Shape& shape);  ///< "[16, 32, 32, 3]"

/// Type and shape of a tensor. Images are [height, width, channels]; batches of them, [batch, height, width, channels].
struct TensorSpec {
  DType dtype = DType::f32;
  Shape shape;
  std::int64_t elements() const { return lockstep::elements(shape); }
  std::size_t bytes() const { return elements() * size_of(dtype); }
  bool operator==(const TensorSpec&) const = default;
};

/// A 64-byte aligned, uninitialised block of bytes.
class AlignedBytes {
 public:
  AlignedBytes() = default;
  explicit AlignedBytes(std::size_t bytes);
  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* pointer) const;
  };
  std::unique_ptr<std::byte[], Free> data_;
  std::size_t size_ = 0;
};

/// An owning tensor in row-major order. Fresh memory is not initialised.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(TensorSpec spec) : spec_(std::move(spec)), bytes_(spec_.bytes()) {}
  const TensorSpec& spec() const { return spec_; }
  const Shape& shape() const { return spec_.shape; }
  DType dtype() const { return spec_.dtype; }
  std::int64_t elements() const { return spec_.elements(); }
  std::byte* bytes() const { return bytes_.data(); }
  /// All elements; T has the size of the dtype.
  template <class T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(bytes_.data()), static_cast<std::size_t>(elements())};
  }

 private:
  TensorSpec spec_;
  AlignedBytes bytes_;
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

}  // namespace lockstep
