// Numbers from files that may be damaged or malicious.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/data_set.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep {

/// Whether lists and objects nest deeper than any legitimate file: copying or writing such JSON needs a stack of that
/// depth. To be checked before parsing.
[[nodiscard]] bool nests_too_deep(std::string_view json);

/// An integer from parsed JSON. nlohmann's own get<int>() casts a float, which is undefined if it does not fit, and
/// truncates an integer that is too large; here both throw that library's type_error. A template over the value's type,
/// so that core needs no JSON library.
template <class Integer, class Json>
[[nodiscard]] Integer integer_of(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.template get<std::uint64_t>();
    if (std::in_range<Integer>(number)) return static_cast<Integer>(number);
  } else if (value.is_number_integer()) {
    const auto number = value.template get<std::int64_t>();
    if (std::in_range<Integer>(number)) return static_cast<Integer>(number);
  }
  throw Json::type_error::create(302, "expected an integer that fits", &value);
}

/// `default_value` if the object has no such key.
template <class Integer, class Json>
[[nodiscard]] Integer integer_or(const Json& object, const char* key, Integer default_value) {
  const auto found = object.find(key);
  return found == object.end() ? default_value : integer_of<Integer>(*found);
}

template <class Json>
[[nodiscard]] Shape shape_of(const Json& list) {
  if (!list.is_array()) throw Json::type_error::create(302, "expected a list of integers", &list);
  Shape shape;
  for (const auto& extent : list) shape.push_back(integer_of<std::int64_t>(extent));
  return shape;
}

/// The number of elements of a shape; nullopt if an extent is negative, or if the product of the extents other than 0
/// overflows: elements() must be able to multiply them in any order.
[[nodiscard]] inline std::optional<std::int64_t> checked_elements(const Shape& shape) {
  std::int64_t count = 1;
  for (const auto extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(count, std::max<std::int64_t>(extent, 1), &count)) return std::nullopt;
  }
  return std::count(shape.begin(), shape.end(), 0) > 0 ? 0 : count;
}

/// The bytes of a tensor; nullopt as above, or on overflow.
[[nodiscard]] inline std::optional<std::uint64_t> checked_bytes(const Shape& shape, std::size_t element_bytes) {
  const auto count = checked_elements(shape);
  std::uint64_t bytes = 0;
  if (!count || __builtin_mul_overflow(static_cast<std::uint64_t>(*count), element_bytes, &bytes)) return std::nullopt;
  return bytes;
}

/// Whether a feature keeps what its kind promises (lockstep/data_set.hpp); readers and graphs rely on it.
[[nodiscard]] bool is_sound(const Feature& feature);

/// Whether it is one component of a path, so that it cannot lead out of its folder.
[[nodiscard]] constexpr bool is_plain_name(std::string_view name) {
  constexpr std::size_t kLongest = 255;  // bytes, as file systems have it
  return !name.empty() && name.size() <= kLongest && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

}  // namespace lockstep
