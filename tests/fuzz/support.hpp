// What the fuzz targets share.
//
// A target runs a parser on bytes that may be anything. Only lockstep::Error may come out of it, and never the code of
// a bug (internal): whatever else happens, another exception, a sanitizer's report, a failed require(), ends the
// process, and that is a finding.
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

/// Runs the parser. True: it took the input; false: it threw an Error, as it may.
bool accepts(const std::function<void()>& parse);

/// Runs what must succeed once the parser has taken the input: an Error there is a finding, too.
void insist(const std::string& what, const std::function<void()>& body);

/// What must hold whatever the input is; prints `what` and aborts where it does not.
void require(bool holds, const std::string& what);

/// A folder in memory (/dev/shm, where there is one) that goes away with the process.
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

/// Several files in one input: a file ends where "\n--8<--\n" stands, which no parser here gives a meaning. Takes the
/// first off `rest`.
[[nodiscard]] std::string_view take_file(std::string_view& rest);

[[nodiscard]] SourceOptions source(SourceKind kind, std::vector<std::string> paths);

/// Reads the first samples of a set and holds them against what its info says. An Error is fine, once more: some
/// damage shows itself only when a sample is read.
void read_samples(const DataSet& set);

}  // namespace lockstep::fuzz

/// libFuzzer's interface; replay.cpp calls it, too.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
