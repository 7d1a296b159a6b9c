// An event file on disk: its name, and records framed with their length and checksums.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::telemetry {

/// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78; RFC 3720, appendix B.4).
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes);

/// As stored in event files' records: rotated and shifted, so that checksums of data that contain checksums are no
/// special case.
[[nodiscard]] std::uint32_t masked_crc32c(std::string_view bytes);

/// length (u64, little-endian), its masked CRC-32C, the data, their masked CRC-32C.
[[nodiscard]] std::string framed(std::string_view data);

/// A new file in `folder` that readers sort after all others there: they sort by name, which contains the time.
class RecordFile {
 public:
  /// Also creates the folder. Throws Error(cannot_create).
  explicit RecordFile(const std::string& folder);
  ~RecordFile();
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  /// One record, completely or (on a full disk) not at all.
  void append(std::string_view data) const;
  /// Whether no earlier run has left a file here.
  bool is_first() const { return is_first_; }

 private:
  int file_ = -1;
  bool is_first_ = true;
};

}  // namespace lockstep::telemetry
