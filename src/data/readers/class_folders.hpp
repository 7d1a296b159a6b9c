// The class of a file that lies in class folders, on disk or in an archive.
#pragma once

#include <string>
#include <vector>

#include "lockstep/job.hpp"

namespace lockstep::data {

/// The classes of files of one folder or archive, by their names; "" for a file in no folder. Folders may be nested:
/// `class_folder` of the source says which is the class. without it, the innermost, with a warning; Error(data) if
/// innermost folders of one name lie in several others, where nobody but the user can know. `path` is for messages.
[[nodiscard]] std::vector<std::string> classes_of(const std::vector<std::string>& names, const SourceOptions& source,
                                                  const std::string& path, std::vector<std::string>& warnings);

}  // namespace lockstep::data
