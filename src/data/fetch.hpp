// `lockstep data fetch`: downloads a known data set from a list of mirrors that a user can edit, resumes interrupted
// downloads, and accepts only files with the listed SHA-256.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::data {

struct FetchOptions {
  std::string mirrors_file;                ///< the installed share/lockstep/mirrors.json, or a user's own
  std::chrono::seconds stall_timeout{30};  ///< a mirror that sends nothing for this long is given up
  std::function<void(const std::string& name, std::uint64_t done, std::uint64_t all)> progress;
};

struct FetchedFile {
  std::string path;
  bool was_there = false;      ///< already complete and correct
  std::uint64_t received = 0;  ///< bytes that came over the network
};

/// One file in the list.
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

/// Downloads the files of set `name` into `directory`, creating it if necessary. A partial file is called NAME.part.
/// Mirrors are tried in order. Throws Error(data) if a mirror's file has another SHA-256 and no other mirror has the
/// correct one, Error(infrastructure) if no mirror delivers it.
std::vector<FetchedFile> fetch(const std::string& name, const std::string& directory, const FetchOptions& options);

}  // namespace lockstep::data
