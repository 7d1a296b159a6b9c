// Paths in a job: where they are looked up, and which files a pattern matches.
#pragma once

#include <string>
#include <vector>

#include "config/cursor.hpp"
#include "lockstep/job.hpp"

namespace lockstep::config {

/// Whether anything exists at `path`; of an object store it is believed, until it is opened.
[[nodiscard]] bool file_exists(const std::string& path);
/// The same, or a path that continues inside an archive file: cifar-10-binary.tar.gz/test_batch.bin.
[[nodiscard]] bool exists_or_goes_into_a_file(const std::string& path);

/// A relative path is resolved against the job file's folder if something exists there, else against the working
/// directory. A path from the command line is always relative to the working directory.
[[nodiscard]] std::string resolve(const Cursor& at, const std::string& path,
                                  bool (*is_there)(const std::string&) = file_exists);
/// Whether it is a pattern of files of this host.
[[nodiscard]] bool is_pattern(const std::string& path);
/// The paths that a shell pattern matches, in byte order, whatever the locale.
[[nodiscard]] std::vector<std::string> expand(const std::string& pattern);
/// The source of a job that was loaded without its data, with the files that its patterns match now; a pattern that
/// matches nothing is skipped.
[[nodiscard]] SourceOptions expanded(SourceOptions source);

}  // namespace lockstep::config
