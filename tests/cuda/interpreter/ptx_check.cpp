// Decodes all kernels in a folder of PTX, and prints "<instructions> <kernel>" for each. Exits with 1 and a message if
// something is unknown.
#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cuda/interpreter/decode.hpp"

namespace {

int check(const std::filesystem::path& path) {
  std::ifstream file(path);
  int unknown = 0;
  for (const auto& text :
       lockstep::ptx::read_ptx(std::string(std::istreambuf_iterator<char>(file), {}), path.filename())) {
    try {
      const auto kernel = lockstep::ptx::decode(text);
      fmt::print("{} {}\n", kernel.code.size() - 1, kernel.name);
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}\n", error.what());
      ++unknown;
    }
  }
  return unknown;
}

}  // namespace

int main(int count, char** words) {
  try {
    int unknown = 0;
    for (const auto& entry : std::filesystem::directory_iterator(count > 1 ? words[1] : ".")) {
      if (entry.path().extension() == ".ptx") unknown += check(entry.path());
    }
    return unknown == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
