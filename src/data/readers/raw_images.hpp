// Images of one size in records of one length, as in IDX and CIFAR files: a sample is one read at a computed offset, so
// a rank reads only its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/open.hpp"
#include "data/readers/file.hpp"

namespace lockstep::data {

/// `count` records of `stride` bytes from `begin`; a record's pixels start at `pixels`.
struct RawPart {
  std::shared_ptr<const ByteSource> source;
  std::uint64_t begin = 0, stride = 0, pixels = 0;
  std::int64_t count = 0;
};

struct RawImages {
  std::vector<RawPart> parts;
  Shape shape;          ///< of an image: [height, width, channels]
  bool planar = false;  ///< one channel plane after another (CIFAR), not pixel by pixel
  std::vector<std::int32_t> labels;
  std::vector<std::string> class_names;
  std::string format, source;
  std::string files;  ///< names of all files they were read from, for the notes
  ByteCounter counter;
};

/// An image of this shape, and its label.
[[nodiscard]] std::vector<Feature> raw_image_features(const Shape& image);

/// Checks labels against the classes (of `like`, if given) and makes the set.
[[nodiscard]] std::unique_ptr<DataSet> make_raw_images(RawImages images, const SourceOptions& source,
                                                       const IndexOptions& options);

}  // namespace lockstep::data
