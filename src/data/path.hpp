// What readers ask about a path of a job: of a file or folder of this host, or, as s3://bucket/key, of an object store.
#pragma once

#include <string>
#include <vector>

namespace lockstep::data {

enum class PathKind { nothing, file, folder };

/// What is there; of an object store, a folder is what keys have in common up to a slash.
[[nodiscard]] PathKind kind_of(const std::string& path);

/// These paths, with the objects that patterns among them match (as a shell's: `*` and `?` match no slash), in byte
/// order. Patterns of this host's files have been resolved by whoever read the job. Throws Error(data) for a pattern
/// that matches nothing.
[[nodiscard]] std::vector<std::string> with_matching_objects(const std::vector<std::string>& paths);

/// The same path from any working directory, without "..": for names that are kept.
[[nodiscard]] std::string whole_path(const std::string& path);

/// What changes whenever a file does: size, inode and times, or an object's version; "absent" if there is nothing.
/// `uncertain` becomes true if a change within the current second could go unnoticed.
[[nodiscard]] std::string stamp_of_file(const std::string& path, bool& uncertain);
/// A hash of the stamps of all that is below a folder.
[[nodiscard]] std::string stamp_of_folder(const std::string& path, bool& uncertain);

}  // namespace lockstep::data
