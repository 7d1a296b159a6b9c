#include "data/index_notes.hpp"

#include <algorithm>

#include "data/bytes.hpp"
#include "data/path.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

constexpr const char* kNotesTooShort = "index notes end too early";

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
  const std::string whole = whole_path(path);
  if (stamps_.contains(whole)) return;  // only the state before the first read counts
  stamps_[whole] = {folder, folder ? stamp_of_folder(whole, uncertain_) : stamp_of_file(whole, uncertain_)};
}

void IndexNotes::made_from_file(const std::string& path) {
  watch_.add(path);
  made_from(path, false);
}

void IndexNotes::made_from_sample_file(const std::string& path) {
  made_from(path, false);
}

void IndexNotes::made_from_folder(const std::string& path) {
  made_from(path, true);
}

bool IndexNotes::is_made_from_folder(const std::string& path) const {
  const auto found = stamps_.find(whole_path(path));
  return found != stamps_.end() && found->second.folder;
}

bool IndexNotes::are_current() const {
  bool ignored = false;
  return !stamps_.empty() && std::all_of(stamps_.begin(), stamps_.end(), [&](const auto& entry) {
    const auto& [path, stamp] = entry;
    return stamp.text == (stamp.folder ? stamp_of_folder(path, ignored) : stamp_of_file(path, ignored));
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
