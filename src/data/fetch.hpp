// `lockstep data fetch`: downloads a known data set from a list of mirrors that a user can edit, goes on where a
// download was broken off, and takes nothing whose SHA-256 is not the listed one.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::data {

struct FetchOptions {
  std::string mirrors_file;                ///< share/lockstep/mirrors.json where it is installed, or one's own
  std::chrono::seconds stall_timeout{30};  ///< a mirror that sends nothing for so long is given up
  std::function<void(const std::string& name, std::uint64_t done, std::uint64_t all)> progress;
};

struct FetchedFile {
  std::string path;
  bool was_there = false;      ///< whole and right already
  std::uint64_t received = 0;  ///< bytes that came over the network
};

/// One file of the list.
struct FetchFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::string sha256;
};

struct FetchSet {
  std::vector<std::string> mirrors;  ///< URLs; a file's name is appended
  std::vector<FetchFile> files;
};

/// Throws Error(configuration) for a list that cannot be read, Error(usage) for a set that is not in it.
[[nodiscard]] FetchSet read_mirrors(const std::string& mirrors_file, const std::string& name);

/// Downloads the files of set `name` into `directory`, which is made where it is missing. A file under way is called
/// NAME.part. Mirrors are tried in order. Throws Error(data) where a mirror's file has another SHA-256 and no other
/// mirror has the right one, Error(infrastructure) where none delivers it.
std::vector<FetchedFile> fetch(const std::string& name, const std::string& directory, const FetchOptions& options);

}  // namespace lockstep::data
