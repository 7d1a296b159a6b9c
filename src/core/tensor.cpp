#include "lockstep/tensor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <new>

#include "core/round_up.hpp"
#include "lockstep/error.hpp"

namespace lockstep {

namespace {
constexpr std::size_t kAlignment = 64;
}

std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
    case DType::u16:
      return 2;
    case DType::u8:
      return 1;
  }
  LOCKSTEP_CHECK(false, "unknown dtype");
  return 0;
}

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::f64:
      return "f64";
    case DType::i64:
      return "i64";
    case DType::i32:
      return "i32";
    case DType::u16:
      return "u16";
    case DType::u8:
      return "u8";
  }
  return "?";
}

std::int64_t elements(const Shape& shape) {
  std::int64_t count = 1;
  for (const auto extent : shape) count *= extent;
  return count;
}

std::string to_string(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string to_string(const TensorSpec& spec) {
  return fmt::format("{} {}", name_of(spec.dtype), to_string(spec.shape));
}

void Tensor::require_elements(DType wanted) const {
  const bool bits = wanted == DType::u16 && (dtype() == DType::bf16 || dtype() == DType::f16);
  if (dtype() == wanted || bits) return;
  throw Error(ExitCode::usage,
              fmt::format("a tensor: expected elements of {}, found {}", name_of(wanted), to_string(spec_)));
}

AlignedBytes::AlignedBytes(std::size_t bytes) : size_(bytes) {
  const std::size_t rounded = round_up(std::max<std::size_t>(bytes, 1), kAlignment);
  auto* pointer = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  if (pointer == nullptr) throw std::bad_alloc();
  data_.reset(pointer);
}

void AlignedBytes::Free::operator()(std::byte* pointer) const {
  std::free(pointer);
}

}  // namespace lockstep
