#include "cuda/interpreter/library_elements.hpp"

#include <cstring>

#include "core/low_precision.hpp"

namespace lockstep::ptx {

namespace {

const u8* at(Element element, const void* base, std::int64_t first) {
  return static_cast<const u8*>(base) + first * static_cast<std::int64_t>(bytes_of(element));
}

}  // namespace

std::vector<float> to_floats(Element element, const u8* from, std::size_t count) {
  std::vector<float> values(count);
  if (element == Element::fp32) {
    if (count > 0) std::memcpy(values.data(), from, count * sizeof(float));
    return values;
  }
  for (std::size_t i = 0; i < count; ++i) {
    u16 bits = 0;
    std::memcpy(&bits, from + i * sizeof bits, sizeof bits);
    values[i] = element == Element::bf16 ? Bfloat16::to_float(bits) : Float16::to_float(bits);
  }
  return values;
}

void from_floats(Element element, std::span<const float> from, u8* to) {
  if (element == Element::fp32) {
    if (!from.empty()) std::memcpy(to, from.data(), from.size_bytes());
    return;
  }
  for (std::size_t i = 0; i < from.size(); ++i) {
    const u16 bits = element == Element::bf16 ? Bfloat16::from_float(from[i]) : Float16::from_float(from[i]);
    std::memcpy(to + i * sizeof bits, &bits, sizeof bits);
  }
}

float in_tf32(float value) {
  constexpr u32 kDropped = 13;
  const u32 bits = std::bit_cast<u32>(value);
  if ((bits & 0x7f800000U) == 0x7f800000U) return value;
  const u32 rounded = bits + (1U << (kDropped - 1)) - 1 + (bits >> kDropped & 1U);
  return std::bit_cast<float>(rounded >> kDropped << kDropped);
}

std::vector<float> LibraryOperands::read(Element element, const void* base, std::int64_t first, std::size_t count) {
  const u8* const from = memory_.reads(who_, kReads, at(element, base, first), count * bytes_of(element));
  return from == nullptr ? std::vector<float>(count) : to_floats(element, from, count);
}

void LibraryOperands::write(Element element, void* base, std::int64_t first, std::span<const float> values) {
  u8* const to =
      memory_.writes(who_, kWrites, const_cast<u8*>(at(element, base, first)), values.size() * bytes_of(element));
  if (to != nullptr) from_floats(element, values, to);
}

void LibraryOperands::write_workspace(void* workspace, std::span<const float> values) {
  u8* const to = memory_.writes(who_, kWorkspace, workspace, values.size_bytes());
  if (to != nullptr) from_floats(Element::fp32, values, to);
}

std::vector<float> LibraryOperands::read_workspace(const void* workspace, std::size_t count) {
  const u8* const from = memory_.reads(who_, kWorkspace, workspace, count * sizeof(float));
  return from == nullptr ? std::vector<float>(count) : to_floats(Element::fp32, from, count);
}

}  // namespace lockstep::ptx
