// What indexing has found out about a source, by name, so that neither the other ranks of a host nor the next run need
// to find it out again. A reader asks for a note and says how to make it; it also works without notes.
//
// Besides the notes, the files and folders are listed that they were made from, each with a stamp (size and times), so
// that a later run can check whether they have changed.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "data/file_state.hpp"

namespace lockstep::data {

class IndexNotes {
 public:
  /// Returns the note `name`; if there is none yet, makes it with `make` and stores it. Not thread-safe.
  const std::string& take(const std::string& name, const std::function<std::string()>& make);
  bool has(const std::string& name) const { return notes_.contains(name); }
  /// Remembers the state of a file. Call it before the file is read.
  void made_from_file(const std::string& path);
  /// The same for a file that is one of many, whose state is compared whenever it is read.
  void made_from_sample_file(const std::string& path);
  /// The same for a folder and everything below it.
  void made_from_folder(const std::string& path);

  /// Whether what it says of a folder is made again once anything in it has changed.
  bool is_made_from_folder(const std::string& path) const;

  /// Whether take() had to make any.
  bool made_any() const { return made_any_; }
  /// Whether there are notes, made from files.
  bool are_of_files() const { return !notes_.empty() && !stamps_.empty(); }
  /// Whether they were made from files that have not changed since.
  bool are_current() const;
  /// Whether a later change of the files would be noticed: if times are whole seconds, a change within the current one
  /// would not be.
  bool can_be_kept() const { return !stamps_.empty() && !uncertain_; }

  /// The files of made_from_file() as they were when this process called it; not part of what write() returns.
  const FileWatch& watch() const { return watch_; }

  std::string write() const;
  /// Throws Error(data) for bytes that write() did not write.
  [[nodiscard]] static IndexNotes read(std::string_view bytes);

 private:
  void made_from(const std::string& path, bool folder);
  struct Stamp {
    bool folder = false;
    std::string text;
    auto operator<=>(const Stamp&) const = default;
  };
  std::map<std::string, std::string> notes_;
  std::map<std::string, Stamp> stamps_;  ///< by path
  FileWatch watch_;
  bool made_any_ = false, uncertain_ = false;
};

/// The note in `notes`, or the result of `make` if `notes` is null.
[[nodiscard]] inline std::string noted(IndexNotes* notes, const std::string& name,
                                       const std::function<std::string()>& make) {
  return notes == nullptr ? make() : notes->take(name, make);
}

}  // namespace lockstep::data
