#include "run/checkpoint/retention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "run/checkpoint/checkpoint.hpp"
#include "run/checkpoint/files.hpp"

namespace lockstep::checkpoint {

namespace {

namespace fs = std::filesystem;

constexpr const char* kSuperseded = "superseded-";

std::string free_name(const std::string& checkpoints, std::int64_t step) {
  std::string name = fmt::format("{}/{}{:08}", checkpoints, kSuperseded, step);
  for (int i = 2; is_there(name); ++i) name = fmt::format("{}/{}{:08}.{}", checkpoints, kSuperseded, step, i);
  return name;
}

// The manifest is removed first, and synced: a partially removed checkpoint is no checkpoint.
void remove_checkpoint(FileSystem& files, const std::string& path) {
  files.remove(path + "/manifest.json");
  files.sync_directory(path);
  remove_tree(files, path);
}

}  // namespace

std::vector<std::string> dropped(const std::vector<std::string>& newest_first, const Retention& retention,
                                 const std::string& best) {
  std::vector<std::string> others;
  for (std::size_t i = std::max<std::int64_t>(retention.keep, 1); i < newest_first.size(); ++i) {
    const bool milestone = retention.keep_every > 0 && *step_of(newest_first[i]) % retention.keep_every == 0;
    if (!milestone && fs::path(newest_first[i]).filename() != best) others.push_back(newest_first[i]);
  }
  return others;
}

void prune_checkpoints(FileSystem& files, const std::string& checkpoints, const Retention& retention,
                       const std::string& best, const std::string& pinned) {
  const auto list = list_checkpoints(checkpoints);
  for (const std::string& path : dropped(list, retention, best)) {
    if (fs::path(path).filename() != pinned) remove_checkpoint(files, path);
  }
  if (std::ssize(list) < retention.keep) return;  // superseded checkpoints, even damaged ones, are better than none
  for (const auto& name : names_in(checkpoints)) {
    if (name.starts_with(kSuperseded)) remove_tree(files, checkpoints + "/" + name);
  }
}

void write_best(FileSystem& files, const std::string& checkpoints, const std::string& name) {
  write_whole(files, checkpoints + "/best", name + "\n");
  files.sync_directory(checkpoints);
}

void set_aside(FileSystem& files, const std::string& checkpoints, std::int64_t step) {
  bool changed = false;
  for (const auto& name : names_in(checkpoints)) {
    const std::string path = checkpoints + "/" + name;
    const auto found = step_of(path);
    if (!found) continue;
    if (!is_there(path + "/manifest.json")) {
      remove_tree(files, path);
    } else if (*found > step) {
      files.rename(path, free_name(checkpoints, *found));
      changed = true;
    }
  }
  if (changed) files.sync_directory(checkpoints);
}

}  // namespace lockstep::checkpoint
