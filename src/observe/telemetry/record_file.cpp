#include "observe/telemetry/record_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "core/errno_code.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/event_log.hpp"
#include "observe/telemetry/unix_time.hpp"

namespace lockstep::telemetry {

namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;
constexpr std::uint32_t kMask = 0xA282EAD8;

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? kPolynomial : 0);
    table[byte] = rest;
  }
  return table;
}

constexpr auto kTable = make_table();

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "events.out.tfevents.";

template <class T>
void append_little_endian(std::string& bytes, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "host";
}

/// The time in the name of the newest file there, in seconds; 0: there is none.
std::int64_t newest_time(const std::string& folder) {
  std::int64_t newest = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    std::int64_t there = 0;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), there);
    newest = std::max(newest, there);
  }
  return newest;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t rest = ~std::uint32_t{0};
  for (const char byte : bytes) rest = kTable.at((rest ^ static_cast<std::uint8_t>(byte)) & 0xFF) ^ (rest >> 8);
  return ~rest;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + kMask;
}

std::string framed(std::string_view data) {
  std::string record;
  append_little_endian(record, static_cast<std::uint64_t>(data.size()));
  append_little_endian(record, masked_crc32c(record));
  record += data;
  append_little_endian(record, masked_crc32c(data));
  return record;
}

RecordFile::RecordFile(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  const std::int64_t newest = newest_time(folder);
  is_first_ = newest == 0;
  // Later than the newest: a run may resume within the same second, or after the clock was set back.
  const std::int64_t time = std::max(static_cast<std::int64_t>(unix_time()), newest + 1);
  const std::string path = fmt::format("{}/{}{:010}.{}", folder, kPrefix, time, host_name());
  file_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file_ >= 0) return;
  if (!error) error.assign(errno, std::generic_category());
  throw Error(code_of_errno(error, ExitCode::cannot_create),
              fmt::format("{}: cannot make TensorBoard's event file: {}; name another run_directory, or leave "
                          "telemetry.tensorboard out",
                          path, error.message()));
}

RecordFile::~RecordFile() {
  ::close(file_);
}

void RecordFile::append(std::string_view data) const {
  append_line(file_, framed(data));
}

}  // namespace lockstep::telemetry
