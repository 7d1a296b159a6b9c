#include "core/whole_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace lockstep {

std::optional<std::string> read_whole_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return std::move(bytes).str();
}

std::string replace_whole_file(const std::string& path, const std::string& text) {
  std::error_code ignored;  // opening the file reports it
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  const std::string fresh = path + ".new";
  {
    std::ofstream file(fresh, std::ios::binary);
    file << text;
    if (!file.flush()) return fresh + ": " + std::strerror(errno);
  }
  return std::rename(fresh.c_str(), path.c_str()) == 0 ? "" : path + ": " + std::strerror(errno);
}

}  // namespace lockstep
