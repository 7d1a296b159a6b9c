// Small data files for the readers' tests, in a temporary folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "data/open.hpp"
#include "lockstep/data_set.hpp"
#include "lockstep/error.hpp"

namespace lockstep::test {

class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  /// The path of a name in it.
  [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

/// Also makes the parent folders.
void write_file(const std::string& path, const std::string& contents);
[[nodiscard]] std::string read_file(const std::string& path);

/// A smooth image chosen by `seed`, encoded; rows of `channels` (1 or 3) bytes per pixel.
[[nodiscard]] std::string jpeg(int width, int height, int channels, int seed = 0);
[[nodiscard]] std::string png(int width, int height, int channels, int seed = 0);
/// Gray, of 16 bits, from 0 to `white`.
[[nodiscard]] std::string deep_png(int width, int height, int white);
/// The bytes that png() encodes.
[[nodiscard]] std::vector<std::uint8_t> picture(int width, int height, int channels, int seed = 0);

using Members = std::vector<std::pair<std::string, std::string>>;  ///< name and contents; "x/" is a folder
enum class Packing { plain, gzip, zstd, zip, seven_zip };
/// Or another archive.
void write_tar(const std::string& path, const Members& members, Packing packing);
void write_folder(const std::string& path, const Members& members);
[[nodiscard]] std::string gzip(const std::string& contents);

[[nodiscard]] SourceOptions source(SourceKind kind, std::vector<std::string> paths);

/// The message of the Error that `body` throws; the test fails if it throws none, or one with another code.
template <class Body>
[[nodiscard]] std::string message_of(ExitCode code, Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code() == code ? error.what() : std::string("another exit code: ") + error.what();
  }
  return "no error";
}
[[nodiscard]] std::string data_error(const SourceOptions& options);

/// `text` with every `path` cut out: the names of temporary folders vary.
[[nodiscard]] std::string without(std::string text, const std::string& path);

[[nodiscard]] std::vector<std::uint8_t> bytes_of(const Tensor& tensor);
[[nodiscard]] std::vector<std::int32_t> integers_of(const Tensor& tensor);

}  // namespace lockstep::test
