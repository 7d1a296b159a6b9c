// What indexing found out about a source, by name: so that it need not be found out again, by the other ranks of a
// host or by the next run. A reader asks for a note and says how to make it; it works the same without notes.
//
// Beside the notes stand the files and folders that they were made from, each with a stamp (size and times), so that
// notes of a later run can be held against what is there then.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace lockstep::data {

class IndexNotes {
 public:
  /// The note `name`; made by `make`, and kept, where there is none yet. Not thread-safe.
  const std::string& take(const std::string& name, const std::function<std::string()>& make);
  [[nodiscard]] bool has(const std::string& name) const { return notes_.contains(name); }
  /// Remembers the state of a file. To be called before it is read.
  void made_from_file(const std::string& path);
  /// The same of a folder and everything below it.
  void made_from_folder(const std::string& path);

  /// Whether take() had to make any.
  [[nodiscard]] bool made_any() const { return made_any_; }
  /// Whether there are notes, and of files.
  [[nodiscard]] bool are_of_files() const { return !notes_.empty() && !stamps_.empty(); }
  /// Whether they are of files at all, and those are as they were.
  [[nodiscard]] bool are_current() const;
  /// Whether a change of the files would show: one whose times count in whole seconds may change within this one.
  [[nodiscard]] bool can_be_kept() const { return !stamps_.empty() && !uncertain_; }

  [[nodiscard]] std::string write() const;
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
  bool made_any_ = false, uncertain_ = false;
};

/// The note of `notes`, or what `make` returns where there are none (null).
[[nodiscard]] inline std::string noted(IndexNotes* notes, const std::string& name,
                                       const std::function<std::string()>& make) {
  return notes == nullptr ? make() : notes->take(name, make);
}

}  // namespace lockstep::data
