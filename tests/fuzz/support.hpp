// Shared by the fuzz targets.
//
// A target runs a parser on arbitrary bytes. It may only throw lockstep::Error, and never with the code of a bug
// (internal): anything else, another exception, a sanitizer's report or a failed require(), ends the process, and that
// is a finding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "lockstep/data_set.hpp"
#include "lockstep/job.hpp"

namespace lockstep::fuzz {

[[nodiscard]] inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};  // NOLINT: libFuzzer's type
}

/// Runs the parser. True: it accepted the input; false: it threw an Error, which is allowed.
bool accepts(const std::function<void()>& parse);

/// Runs what must succeed after the parser has accepted the input: an Error here is a finding, too.
void insist(const std::string& what, const std::function<void()>& body);

/// What must hold for any input; prints `what` and aborts if it does not.
void require(bool holds, const std::string& what);

/// A temporary folder in memory (/dev/shm, if it exists).
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// Overwrites a file; returns its path.
  std::string put(const std::string& name, std::string_view contents) const;

 private:
  std::string path_;
};

/// Several files in one input, separated by "\n--8<--\n", which has no meaning for any parser here. Removes the first
/// file from `rest`.
[[nodiscard]] std::string_view take_file(std::string_view& rest);

[[nodiscard]] SourceOptions source(SourceKind kind, std::vector<std::string> paths);

/// Reads the first samples of a set and compares them with its info. An Error is allowed here, too: some damage is
/// noticed only when a sample is read.
void read_samples(const DataSet& set);

}  // namespace lockstep::fuzz

/// libFuzzer's interface; replay.cpp calls it, too.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
