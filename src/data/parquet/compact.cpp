#include "data/parquet/compact.hpp"

#include <algorithm>

namespace lockstep::data {
namespace {

enum class Type : unsigned { stop = 0, yes, no, byte, i16, i32, i64, real, binary, list, set, map, record };

constexpr int kDeepest = 16;  // Parquet's own are 6 deep

[[noreturn]] void damaged_description() {
  throw Error(ExitCode::data, "damaged: its description of itself cannot be read");
}

CompactValue read_record(ByteReader& in, int depth);

/// `in_field`: a bool's value is its type there, and a byte elsewhere.
CompactValue read_value(ByteReader& in, Type type, bool in_field, int depth) {
  if (depth > kDeepest) damaged_description();
  CompactValue value;
  switch (type) {
    case Type::yes:
    case Type::no:
      value.number = in_field ? static_cast<int>(type == Type::yes) : static_cast<int>(in.value<std::uint8_t>() == 1);
      break;
    case Type::byte:
      value.number = in.value<std::uint8_t>();  // Parquet has no negative ones
      break;
    case Type::i16:
    case Type::i32:
    case Type::i64:
      value.number = read_zigzag(in);
      break;
    case Type::real:
      (void)in.take(sizeof(double));
      break;
    case Type::binary:
      value.bytes = in.text(read_varint(in));
      break;
    case Type::list:
    case Type::set: {
      const unsigned head = in.value<std::uint8_t>();
      const std::uint64_t count = head >> 4U == 15 ? read_varint(in) : head >> 4U;
      for (std::uint64_t i = 0; i < count; ++i) {
        value.elements.push_back(read_value(in, Type{head & 15U}, false, depth + 1));
      }
      break;
    }
    case Type::map: {
      const std::uint64_t count = read_varint(in);
      const unsigned types = count > 0 ? in.value<std::uint8_t>() : 0U;
      for (std::uint64_t i = 0; i < count; ++i) {
        (void)read_value(in, Type{types >> 4U}, false, depth + 1);
        (void)read_value(in, Type{types & 15U}, false, depth + 1);
      }
      break;
    }
    case Type::record:
      value = read_record(in, depth + 1);
      break;
    default:
      damaged_description();
  }
  return value;
}

CompactValue read_record(ByteReader& in, int depth) {
  CompactValue record;
  std::int64_t field = 0;
  for (;;) {
    const unsigned head = in.value<std::uint8_t>();
    const Type type{head & 15U};
    if (type == Type::stop) return record;
    field = head >> 4U != 0 ? field + (head >> 4U) : read_zigzag(in);
    record.fields.push_back(field);
    record.elements.push_back(read_value(in, type, true, depth));
  }
}

}  // namespace

const CompactValue* CompactValue::find(int field) const {
  const auto found = std::find(fields.begin(), fields.end(), field);
  return found == fields.end() ? nullptr : &elements[found - fields.begin()];
}

const CompactValue& CompactValue::at(int field) const {
  const CompactValue* found = find(field);
  if (found == nullptr) damaged_description();
  return *found;
}

std::int64_t CompactValue::number_of(int field, std::int64_t otherwise) const {
  const CompactValue* found = find(field);
  return found == nullptr ? otherwise : found->number;
}

std::uint64_t read_varint(ByteReader& in) {
  std::uint64_t number = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto byte = in.value<std::uint8_t>();
    number |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return number;
  }
  damaged_description();
}

std::int64_t read_zigzag(ByteReader& in) {
  const std::uint64_t number = read_varint(in);
  return (number >> 1U) ^ (~(number & 1U) + 1);
}

CompactValue read_compact(ByteReader& in) {
  return read_record(in, 0);
}

}  // namespace lockstep::data
