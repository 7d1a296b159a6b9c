// Images in class folders, on disk or in an archive: a file's class is a folder that it is in
// (class_folders.hpp).
//
// Ids follow the order of the paths and, within each, of the files sorted by name. So a folder and its archive give the
// same ids. Every file counts: one that is not an image is a bad sample, and so is a class folder without files.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "data/readers/class_folders.hpp"
#include "data/readers/common.hpp"
#include "data/readers/encoded_images.hpp"
#include "data/readers/readers.hpp"

namespace lockstep::data {
namespace {

bool holds_nothing(const FileTree& tree, const std::string& folder) {
  const std::string prefix = folder + "/";
  const auto& files = tree.files();
  const auto file =
      std::lower_bound(files.begin(), files.end(), prefix,
                       [](const FileTree::Entry& entry, const std::string& key) { return entry.name < key; });
  const auto& faults = tree.faults();
  const auto fault =
      std::lower_bound(faults.begin(), faults.end(), prefix,
                       [](const FileTree::Fault& entry, const std::string& key) { return entry.name < key; });
  const auto& folders = tree.folders();
  const auto below = std::lower_bound(folders.begin(), folders.end(), prefix);
  return (file == files.end() || !file->name.starts_with(prefix)) &&
         (fault == faults.end() || !fault->name.starts_with(prefix)) &&
         (below == folders.end() || !below->starts_with(prefix));
}

void add_tree(std::shared_ptr<const FileTree> tree, const SourceOptions& source, ImageCandidates& candidates,
              std::set<std::string>& classes) {
  const std::size_t before = candidates.samples.size();
  std::vector<std::string> names;
  const auto add = [&](const std::string& name, std::vector<ImageFile> images, std::string fault) {
    names.push_back(name);
    candidates.samples.push_back({name, "", std::move(images), std::move(fault)});
  };
  for (const auto& entry : tree->files()) add(entry.name, {{tree.get(), entry}}, "");
  for (const auto& fault : tree->faults()) add(fault.name, {}, fault.text);
  for (const auto& folder : tree->folders()) {
    if (!holds_nothing(*tree, folder)) continue;
    add(folder, {}, "the class folder is empty");
    names.back() += "/";  // it is a folder of the class, not a file in one
  }
  const auto found = classes_of(names, source, tree->path(), candidates.class_warnings);
  for (std::size_t i = 0; i < found.size(); ++i) {
    ImageSample& sample = candidates.samples[before + i];
    sample.class_name = found[i];
    if (found[i].empty() && sample.fault.empty()) sample.fault = "lies in no class folder";
    if (!found[i].empty()) classes.insert(found[i]);
  }
  candidates.warnings.insert(candidates.warnings.end(), tree->warnings().begin(), tree->warnings().end());
  candidates.trees.push_back(std::move(tree));
}

}  // namespace

std::unique_ptr<DataSet> open_images(const SourceOptions& source, const IndexOptions& options) {
  ImageCandidates candidates;
  candidates.format = "images in class folders";
  candidates.feature_names = {"image"};
  candidates.counter = make_byte_counter();
  std::set<std::string> classes;
  for (const auto& path : source.paths) {
    add_tree(open_tree(path, candidates.counter, options.notes), source, candidates, classes);
  }
  candidates.class_names.assign(classes.begin(), classes.end());
  return make_encoded_images(std::move(candidates), source, options);
}

}  // namespace lockstep::data
