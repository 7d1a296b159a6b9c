#include "data/index_notes.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <vector>

#include "core/digest.hpp"
#include "data/bytes.hpp"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;
constexpr const char* kNotesTooShort = "index notes end too early";

/// If a file system's times are whole seconds, a change within the current second could go unnoticed.
bool is_uncertain(const timespec& time) {
  return time.tv_nsec == 0 && std::time(nullptr) - time.tv_sec < 2;
}

/// "size inode mtime ctime"; "absent" if there is nothing. Includes ctime, because programs can set mtime.
std::string stamp_of(const std::string& path, bool& uncertain) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return "absent";
  uncertain = uncertain || is_uncertain(status.st_mtim) || is_uncertain(status.st_ctim);
  return fmt::format("{} {} {}.{:09} {}.{:09}", status.st_size, status.st_ino, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec, status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
}

/// A hash over all files below, and over folders, whose times change when names are added or removed.
std::string stamp_of_folder(const std::string& path, bool& uncertain) {
  std::vector<std::string> lines{stamp_of(path, uncertain)};
  std::error_code failed;
  const auto options = fs::directory_options::follow_directory_symlink;
  for (auto at = fs::recursive_directory_iterator(path, options, failed);
       !failed && at != fs::recursive_directory_iterator(); at.increment(failed)) {
    lines.push_back(at->path().string() + "\n" + stamp_of(at->path().string(), uncertain));
  }
  uncertain = uncertain || failed;
  std::sort(lines.begin(), lines.end());
  Sha256 digest;
  for (const auto& line : lines) digest.add(line + "\n");
  return digest.hex();
}

}  // namespace

const std::string& IndexNotes::take(const std::string& name, const std::function<std::string()>& make) {
  auto found = notes_.find(name);
  if (found == notes_.end()) {
    found = notes_.emplace(name, make()).first;
    made_any_ = true;
  }
  return found->second;
}

void IndexNotes::made_from(const std::string& path, bool folder) {
  const std::string absolute = fs::absolute(path).lexically_normal().string();
  if (stamps_.contains(absolute)) return;  // only the state before the first read counts
  stamps_[absolute] = {folder, folder ? stamp_of_folder(absolute, uncertain_) : stamp_of(absolute, uncertain_)};
}

void IndexNotes::made_from_file(const std::string& path) {
  made_from(path, false);
}

void IndexNotes::made_from_folder(const std::string& path) {
  made_from(path, true);
}

bool IndexNotes::are_current() const {
  bool ignored = false;
  return !stamps_.empty() && std::all_of(stamps_.begin(), stamps_.end(), [&](const auto& entry) {
    const auto& [path, stamp] = entry;
    return stamp.text == (stamp.folder ? stamp_of_folder(path, ignored) : stamp_of(path, ignored));
  });
}

std::string IndexNotes::write() const {
  std::string out;
  append(out, static_cast<std::uint64_t>(stamps_.size()));
  for (const auto& [path, stamp] : stamps_) {
    append_text(out, path);
    append(out, stamp.folder);
    append_text(out, stamp.text);
  }
  append(out, static_cast<std::uint64_t>(notes_.size()));
  for (const auto& [name, note] : notes_) {
    append_text(out, name);
    append_text(out, note);
  }
  return out;
}

IndexNotes IndexNotes::read(std::string_view bytes) {
  IndexNotes notes;
  ByteReader reader(bytes, kNotesTooShort);
  for (auto left = reader.value<std::uint64_t>(); left > 0; --left) {
    const std::string path = reader.text();
    const bool folder = reader.value<std::uint8_t>() != 0;
    notes.stamps_[path] = {folder, reader.text()};
  }
  for (auto left = reader.value<std::uint64_t>(); left > 0; --left) {
    const std::string name = reader.text();
    notes.notes_[name] = reader.text();
  }
  if (!reader.rest().empty()) throw Error(ExitCode::data, "index notes are longer than they say");
  return notes;
}

}  // namespace lockstep::data
