#include "data/readers/class_folders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

/// "train/cat" of "train/cat/7.jpg".
std::string_view folder_of(std::string_view name) {
  const auto slash = name.rfind('/');
  return slash == std::string_view::npos ? "" : name.substr(0, slash);
}

std::string_view last_of(std::string_view folder) {
  return folder.substr(folder.rfind('/') + 1);  // npos + 1 is 0
}

std::string_view first_of(std::string_view folder) {
  return folder.substr(0, folder.find('/'));
}

/// How many bytes of all folders are folders that all files lie in: those above the classes.
std::size_t shared_bytes(const std::vector<std::string>& names) {
  std::string_view shared;
  bool any = false;
  for (const auto& name : names) {
    const std::string_view folder = folder_of(name);
    if (folder.empty()) continue;
    std::string_view above = folder.substr(0, folder.size() - last_of(folder).size());  // with its slash
    if (any) {
      const auto differs = std::mismatch(shared.begin(), shared.end(), above.begin(), above.end()).first;
      above = shared.substr(0, differs - shared.begin());
      above = above.substr(0, above.rfind('/') + 1);
    }
    shared = above;
    any = true;
  }
  return shared.size();
}

std::string class_folder_of(const SourceOptions& source) {
  return source.attributes.has("class_folder") ? source.attributes.text("class_folder") : "";
}

}  // namespace

std::vector<std::string> classes_of(const std::vector<std::string>& names, const SourceOptions& source,
                                    const std::string& path, std::vector<std::string>& warnings) {
  const std::string which = class_folder_of(source);
  const std::size_t shared = shared_bytes(names);
  std::vector<std::string> classes;
  std::map<std::string_view, std::string_view> folders;  // by the innermost
  std::string_view nested;
  for (const auto& name : names) {
    const std::string_view folder = folder_of(name);
    const std::string_view below = folder.empty() ? "" : folder.substr(shared);
    const std::string_view last = last_of(below), first = first_of(below);
    classes.emplace_back(which == "outermost" ? first : last);
    if (first != below && nested.empty()) nested = below;
    const auto [other, fresh] = folders.emplace(last, below);
    if (fresh || other->second == below || !which.empty()) continue;
    throw Error(
        ExitCode::data,
        fmt::format("{}: nested folders: '{}' lies in both '{}' and '{}', so it is not clear which folder is the "
                    "class; set `class_folder: innermost` for '{}', or `outermost` for '{}' and '{}'",
                    path, last, folder_of(other->second), folder_of(below), last, first_of(other->second), first));
  }
  if (which.empty() && !nested.empty()) {
    warnings.push_back(
        fmt::format("{}: nested folders: the class is the innermost, such as '{}' of '{}'; set "
                    "`class_folder: outermost` for '{}', as torchvision's ImageFolder takes it",
                    path, last_of(nested), nested, first_of(nested)));
  }
  return classes;
}

}  // namespace lockstep::data
