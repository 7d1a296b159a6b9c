// Images in class folders, on disk or in an archive: a file's class is the folder that it is in.
//
// Ids follow the order of the paths and, within each, of the files sorted by name. So a folder and its archive give the
// same ids. Every file counts: one that is not an image is a bad sample, and so is a class folder without files.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "data/readers/common.hpp"
#include "data/readers/encoded_images.hpp"
#include "data/readers/readers.hpp"

namespace lockstep::data {
namespace {

/// "cat" of "train/cat/7.jpg"; empty if there is no folder.
std::string parent_name(const std::string& name) {
  const auto end = name.rfind('/');
  if (end == std::string::npos) return "";
  const auto begin = name.rfind('/', end - 1);
  return name.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin == std::string::npos ? 0 : begin + 1));
}

bool holds_nothing(const FileTree& tree, const std::string& folder) {
  const std::string prefix = folder + "/";
  const auto& files = tree.files();
  const auto file =
      std::lower_bound(files.begin(), files.end(), prefix,
                       [](const FileTree::Entry& entry, const std::string& key) { return entry.name < key; });
  const auto& folders = tree.folders();
  const auto below = std::lower_bound(folders.begin(), folders.end(), prefix);
  return (file == files.end() || !file->name.starts_with(prefix)) &&
         (below == folders.end() || !below->starts_with(prefix));
}

void add_tree(std::shared_ptr<const FileTree> tree, ImageCandidates& candidates, std::set<std::string>& classes) {
  for (const auto& entry : tree->files()) {
    ImageSample sample{entry.name, parent_name(entry.name), {{tree.get(), entry}}, ""};
    if (sample.class_name.empty()) sample.fault = "lies in no class folder";
    if (!sample.class_name.empty()) classes.insert(sample.class_name);
    candidates.samples.push_back(std::move(sample));
  }
  for (const auto& folder : tree->folders()) {
    if (!holds_nothing(*tree, folder)) continue;
    candidates.samples.push_back({folder, parent_name(folder + "/x"), {}, "the class folder is empty"});
    classes.insert(candidates.samples.back().class_name);
  }
  candidates.trees.push_back(std::move(tree));
}

}  // namespace

std::unique_ptr<DataSet> open_images(const SourceOptions& source, const IndexOptions& options) {
  ImageCandidates candidates;
  candidates.format = "images in class folders";
  candidates.feature_names = {"image"};
  candidates.counter = make_byte_counter();
  std::set<std::string> classes;
  for (const auto& path : source.paths)
    add_tree(open_tree(path, candidates.counter, options.notes), candidates, classes);
  candidates.class_names.assign(classes.begin(), classes.end());
  return make_encoded_images(std::move(candidates), source, options);
}

}  // namespace lockstep::data
