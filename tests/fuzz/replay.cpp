// Runs a fuzz target on files in an ordinary build: `fuzz_tar FILE_OR_FOLDER...`. Fails if there are no files, or if
// one of them is a finding again.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "core/files.hpp"
#include "fuzz/support.hpp"

namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_of(const std::string& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(path)) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

/// Whether the parser behaved as it should.
bool replay(const std::string& file) {
  const auto input = lockstep::read_whole_file(file);
  if (!input) {
    fmt::print(stderr, "{}: cannot be read\n", file);
    return false;
  }
  // Printed first: if a file ends the process, it is the last one named.
  fmt::print("{}\n", file);
  std::fflush(stdout);
  // Exactly as large as the input, as in libFuzzer, so that a sanitizer detects reads beyond its end.
  const std::vector<std::uint8_t> bytes(input->begin(), input->end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  return true;
}

}  // namespace

int main(int count, char** words) {
  std::size_t files = 0;
  bool good = true;
  try {
    for (int i = 1; i < count; ++i) {
      for (const auto& file : files_of(words[i])) {
        good = replay(file) && good;
        ++files;
      }
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  fmt::print("{} inputs\n", files);
  if (files == 0) fmt::print(stderr, "expected a corpus, found no file\n");
  return good && files > 0 ? 0 : 1;
}
