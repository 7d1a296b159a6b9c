#include "data/parquet/column.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "core/low_precision.hpp"

namespace lockstep::data {
namespace {

using Meaning = ParquetColumn::Meaning;

/// Numbers of fields and values are those of parquet.thrift.
namespace element {
constexpr int kType = 1, kWidth = 2, kRepetition = 3, kName = 4, kChildren = 5, kConverted = 6, kScale = 7,
              kLogical = 10;
constexpr int kRequired = 0, kRepeated = 2;
}  // namespace element
namespace logical {
constexpr int kText = 1, kEnum = 4, kDecimal = 5, kDate = 6, kTime = 7, kTimestamp = 8, kInteger = 10, kUnknown = 11,
              kJson = 12, kHalf = 15;
}  // namespace logical
/// What older writers have instead of a logical type.
namespace converted {
constexpr int kText = 0, kEnum = 4, kDecimal = 5, kDate = 6, kTimeMillis = 7, kTimestampMicros = 10, kUnsigned8 = 11,
              kUnsigned64 = 14, kSigned64 = 18, kJson = 19;
}  // namespace converted

void refuse(ParquetColumn& column, const char* found) {
  column.refusal = fmt::format("expected numbers or texts, found {}", found);
}

template <class T>
T number_of(const std::string& raw) {
  if (raw.size() != sizeof(T)) throw Error(ExitCode::data, "damaged: a value has another length than its type");
  T number;
  std::memcpy(&number, raw.data(), sizeof(T));
  return number;
}

std::int64_t stored_integer(ParquetType type, const std::string& raw) {
  return type == ParquetType::i32 ? number_of<std::int32_t>(raw) : number_of<std::int64_t>(raw);
}

__extension__ using Wide = __int128;

std::string decimal_text(Wide number, int digits) {
  std::string text = fmt::format("{}", number < 0 ? -number : number);
  if (std::ssize(text) <= digits) text.insert(0, (digits + 1) - text.size(), '0');
  if (digits > 0) text.insert(text.size() - digits, 1, '.');
  return number < 0 ? "-" + text : text;
}

/// Decimals that no integer holds: the highest byte first.
Wide big_endian(const std::string& raw) {
  if (raw.empty() || raw.size() > sizeof(Wide)) {
    throw Error(ExitCode::data, fmt::format("expected decimals of at most 16 bytes, found one of {}", raw.size()));
  }
  Wide number = (raw[0] & 0x80) != 0 ? -1 : 0;  // of the sign
  for (const char byte : raw) number = number * 256 + static_cast<unsigned char>(byte);
  return number;
}

std::string date_text(std::int64_t days) {
  constexpr std::int64_t kFarthest = 11'000'000;  // which the library's years still hold
  if (std::abs(days) > kFarthest) return fmt::format("{}", days);
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(days))};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()));
}

std::int64_t units_in_second(int digits) {
  return digits == 3 ? 1'000 : digits == 6 ? 1'000'000 : 1'000'000'000;
}

std::string time_text(std::int64_t time, int digits) {
  const std::int64_t unit = units_in_second(digits), seconds = time / unit;
  const auto rest = time % unit == 0 ? std::string() : fmt::format(".{:0{}}", time % unit, digits);
  return fmt::format("{:02}:{:02}:{:02}{}", seconds / 3600, seconds / 60 % 60, seconds % 60, rest);
}

std::string timestamp_text(std::int64_t time, int digits) {
  const std::int64_t day = units_in_second(digits) * 86'400;
  const std::int64_t days = time / day - static_cast<int>(time % day < 0);
  return date_text(days) + " " + time_text(time - days * day, digits);
}

/// Old timestamps: nanoseconds of the day, and the day since 4713 BC.
std::string old_timestamp_text(const std::string& raw) {
  if (raw.size() != 12) throw Error(ExitCode::data, "damaged: a value has another length than its type");
  constexpr std::int64_t kEpoch = 2'440'588;
  const auto nanoseconds = number_of<std::int64_t>(raw.substr(0, 8));
  return date_text(number_of<std::int32_t>(raw.substr(8)) - kEpoch) + " " +
         time_text(std::clamp<std::int64_t>(nanoseconds, 0, 86'399'999'999'999), 9);
}

std::string real_text(ParquetType type, const std::string& raw) {
  const auto text = [](auto number) { return std::isnan(number) ? std::string() : fmt::format("{}", number); };
  if (type == ParquetType::f64) return text(number_of<double>(raw));
  if (type == ParquetType::f32) return text(number_of<float>(raw));
  return text(Float16::to_float(number_of<std::uint16_t>(raw)));
}

/// Time units: milliseconds, microseconds and nanoseconds are fields 1, 2 and 3.
int digits_of(const CompactValue& time) {
  const CompactValue& unit = time.at(2);
  return unit.fields.empty() ? 3 : unit.fields.front() * 3;
}

void read_logical(const CompactValue& type, ParquetColumn& column) {
  if (type.fields.empty()) return;
  const int kind = type.fields.front();
  const CompactValue& settings = type.elements.front();
  switch (kind) {
    case logical::kText:
    case logical::kEnum:
    case logical::kJson:
      column.meaning = Meaning::text;
      break;
    case logical::kUnknown:
      break;  // nothing but nulls
    case logical::kDecimal:
      column.meaning = Meaning::decimal;
      column.digits = settings.number_of(1, 0);
      break;
    case logical::kDate:
      column.meaning = Meaning::date;
      break;
    case logical::kTime:
    case logical::kTimestamp:
      column.meaning = kind == logical::kTime ? Meaning::time : Meaning::timestamp;
      column.digits = digits_of(settings);
      break;
    case logical::kInteger:
      column.meaning = settings.number_of(2, 1) != 0 ? Meaning::integer : Meaning::unsigned_integer;
      break;
    case logical::kHalf:
      column.meaning = Meaning::real;
      break;
    default:
      refuse(column, "lists, intervals or identifiers");
  }
}

void read_converted(int kind, const CompactValue& schema, ParquetColumn& column) {
  if (kind == converted::kText || kind == converted::kEnum || kind == converted::kJson) {
    column.meaning = Meaning::text;
  } else if (kind == converted::kDecimal) {
    column.meaning = Meaning::decimal;
    column.digits = schema.number_of(element::kScale, 0);
  } else if (kind == converted::kDate) {
    column.meaning = Meaning::date;
  } else if (kind >= converted::kTimeMillis && kind <= converted::kTimestampMicros) {
    const int of_times = kind - converted::kTimeMillis;  // two units of times, then of timestamps
    column.meaning = of_times < 2 ? Meaning::time : Meaning::timestamp;
    column.digits = of_times % 2 == 0 ? 3 : 6;
  } else if (kind >= converted::kUnsigned8 && kind <= converted::kSigned64) {
    column.meaning = kind <= converted::kUnsigned64 ? Meaning::unsigned_integer : Meaning::integer;
  } else {
    refuse(column, "lists, intervals or identifiers");
  }
}

Meaning meaning_of(ParquetType type) {
  switch (type) {
    case ParquetType::boolean:
      return Meaning::boolean;
    case ParquetType::i32:
    case ParquetType::i64:
      return Meaning::integer;
    case ParquetType::i96:
      return Meaning::timestamp;
    case ParquetType::f32:
    case ParquetType::f64:
      return Meaning::real;
    default:
      return Meaning::text;
  }
}

}  // namespace

std::string ParquetColumn::text_of(const std::string& raw) const {
  switch (meaning) {
    case Meaning::boolean:
      return number_of<char>(raw) != 0 ? "true" : "false";
    case Meaning::integer:
      return fmt::format("{}", stored_integer(type, raw));
    case Meaning::unsigned_integer:
      return type == ParquetType::i32 ? fmt::format("{}", number_of<std::uint32_t>(raw))
                                      : fmt::format("{}", number_of<std::uint64_t>(raw));
    case Meaning::decimal: {
      const bool as_integer = type == ParquetType::i32 || type == ParquetType::i64;
      return decimal_text(as_integer ? Wide{stored_integer(type, raw)} : big_endian(raw), digits);
    }
    case Meaning::date:
      return date_text(stored_integer(type, raw));
    case Meaning::time:
      return time_text(stored_integer(type, raw), digits);
    case Meaning::timestamp:
      return type == ParquetType::i96 ? old_timestamp_text(raw) : timestamp_text(stored_integer(type, raw), digits);
    case Meaning::real:
      return real_text(type, raw);
    case Meaning::text:
      break;
  }
  return raw;
}

std::int64_t children_of(const CompactValue& schema) {
  return std::max<std::int64_t>(schema.number_of(element::kChildren, 0), 0);
}

ParquetColumn parquet_column(const CompactValue& schema) {
  ParquetColumn column;
  column.name = schema.at(element::kName).bytes;
  const auto repetition = schema.number_of(element::kRepetition, element::kRequired);
  if (schema.number_of(element::kChildren, 0) > 0 || repetition == element::kRepeated) {
    refuse(column, "lists or groups of values");
    return column;
  }
  const std::int64_t type = schema.at(element::kType).number;
  if (type < 0 || type > static_cast<int>(ParquetType::fixed)) {
    refuse(column, "values of an unknown type");
    return column;
  }
  column.type = ParquetType{static_cast<std::int8_t>(type)};
  column.optional = repetition != element::kRequired;
  column.width = std::clamp<std::int64_t>(schema.number_of(element::kWidth, 0), 0, 1 << 20);
  if (column.type == ParquetType::fixed && column.width == 0) refuse(column, "values of no length");
  column.meaning = meaning_of(column.type);
  if (const CompactValue* found = schema.find(element::kLogical)) {
    read_logical(*found, column);
  } else if (const CompactValue* older = schema.find(element::kConverted)) {
    read_converted(older->number, schema, column);
  }
  constexpr std::size_t kWidestDecimal = 16;
  if (column.meaning == Meaning::decimal && column.width > kWidestDecimal)
    refuse(column, "decimals of more than 38 digits");
  column.digits = std::clamp(column.digits, 0, 38);
  return column;
}

}  // namespace lockstep::data
