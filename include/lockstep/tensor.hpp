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

[[nodiscard]] std::string to_string(const TensorSpec& spec);  ///< "f32 [16, 32, 32, 3]"

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

/// The type of the elements of C++ type T: that of bf16 and f16, which are read as their bits, is u16.
template <class T>
inline constexpr DType kDTypeOf = [] { static_assert(!sizeof(T), "no tensor has such elements"); }();
template <>
inline constexpr DType kDTypeOf<float> = DType::f32;
template <>
inline constexpr DType kDTypeOf<double> = DType::f64;
template <>
inline constexpr DType kDTypeOf<std::int64_t> = DType::i64;
template <>
inline constexpr DType kDTypeOf<std::int32_t> = DType::i32;
template <>
inline constexpr DType kDTypeOf<std::uint16_t> = DType::u16;
template <>
inline constexpr DType kDTypeOf<std::uint8_t> = DType::u8;

/// An owning tensor in row-major order. Fresh memory is not initialised.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(TensorSpec spec) : spec_(std::move(spec)), bytes_(spec_.bytes()) {}
  const TensorSpec& spec() const { return spec_; }
  const Shape& shape() const { return spec_.shape; }
  DType dtype() const { return spec_.dtype; }
  std::int64_t elements() const { return spec_.elements(); }
  std::byte* bytes() { return bytes_.data(); }
  const std::byte* bytes() const { return bytes_.data(); }
  /// All elements. Throws Error(usage) if they are not of type T.
  template <class T>
  std::span<T> as() {
    require_elements(kDTypeOf<T>);
    return {reinterpret_cast<T*>(bytes_.data()), static_cast<std::size_t>(elements())};
  }
  template <class T>
  std::span<const T> as() const {
    require_elements(kDTypeOf<T>);
    return {reinterpret_cast<const T*>(bytes_.data()), static_cast<std::size_t>(elements())};
  }

 private:
  void require_elements(DType wanted) const;

  TensorSpec spec_;
  AlignedBytes bytes_;
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

}  // namespace lockstep
