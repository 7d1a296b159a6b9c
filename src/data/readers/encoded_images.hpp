// Samples that consist of one or several encoded images and a class, or numbers, for all containers: class folders,
// archives, or a CSV.
//
// Indexing checks every image. Up to kFullCheckBytes of files in total, each is decoded once; beyond that, only the
// header and the end marker are read, and damage in the middle is found when the sample is read (an error, exit 65).
// What is allowed but rarely meant is counted: images that Exif says are to be turned, 16 bits of which few are used.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/archive.hpp"
#include "data/image_file.hpp"
#include "data/open.hpp"
#include "data/readers/common.hpp"

namespace lockstep::data {

/// One file of a sample.
struct ImageFile {
  const FileTree* tree = nullptr;
  FileTree::Entry entry;
};

struct ImageSample {
  std::string name;
  std::string class_name;
  std::vector<ImageFile> images;     ///< by feature
  std::string fault;                 ///< set if it is bad before any image has been checked
  std::vector<double> numbers = {};  ///< by target
};

struct ImageCandidates {
  std::string format;
  std::vector<std::string> feature_names;  ///< of the images; "label" is added, unless there are no labels
  std::vector<std::string> mask_classes;   ///< of the mask; empty: there is none
  std::size_t mask = 0;                    ///< which of the images it is
  MaskCode mask_code{0};                   ///< what its pixel values stand for
  std::vector<std::string> targets;        ///< what the numbers of a sample are; none where there are labels
  bool has_labels = true;
  std::vector<std::shared_ptr<const FileTree>> trees;
  std::vector<ImageSample> samples;
  std::vector<std::string> class_names;     ///< of the whole set, in order
  std::vector<std::string> warnings;        ///< for DataSetInfo
  std::vector<std::string> class_warnings;  ///< the same, unless the classes come from another set
  ByteCounter counter;
};

/// Checks the candidates, refuses or skips the bad ones, and makes the set of the rest.
[[nodiscard]] std::unique_ptr<DataSet> make_encoded_images(ImageCandidates candidates, const SourceOptions& source,
                                                           const IndexOptions& options);

}  // namespace lockstep::data
