#include "data/readers/encoded_images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "core/digest.hpp"
#include "core/words.hpp"
#include "data/bytes.hpp"
#include "data/path.hpp"
#include "data/readers/common.hpp"
#include "data/readers/prepare.hpp"
#include "data/sample_identities.hpp"
#include "data/target_offsets.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

constexpr std::uint64_t kHeadBytes = 64 << 10, kTailBytes = 4 << 10;

class EncodedImages : public DataSet, public KnowsIdentities {
 public:
  /// `contents`: of each sample the hash of its bytes; none: not known.
  EncodedImages(ImageCandidates candidates, DataSetInfo info, std::vector<std::int32_t> labels,
                std::vector<std::uint64_t> contents)
      : info_(std::move(info)),
        labels_(std::move(labels)),
        contents_(std::move(contents)),
        samples_(std::ssize(candidates.samples)),
        width_(candidates.feature_names.size()),
        mask_code_(candidates.mask_code),
        counter_(std::move(candidates.counter)),
        trees_(std::move(candidates.trees)) {
    for (const auto& tree : trees_) places_[tree.get()] = whole_path(tree->path());
    for (auto& sample : candidates.samples) {
      if (sample.name != sample.images.front().entry.name) names_.push_back(std::move(sample.name));
      for (auto& image : sample.images) images_.push_back(std::move(image));
      numbers_.insert(numbers_.end(), sample.numbers.begin(), sample.numbers.end());
    }
  }

  const DataSetInfo& info() const override { return info_; }
  std::int64_t size() const override { return samples_; }
  std::int64_t label(std::int64_t id) const override { return labels_.empty() ? -1 : labels_.at(id); }
  std::uint64_t bytes_read() const override { return *counter_; }

  std::string name(std::int64_t id) const override { return names_.empty() ? image(id, 0).entry.name : names_.at(id); }

  void read(std::int64_t id, Sample& out) const override {
    read_without_images(id, out);
    std::vector<std::byte> scratch;
    for (std::size_t i = 0; i < width_; ++i) {
      const ImageFile& file = image(id, i);
      const auto bytes = bytes_of(file, scratch);
      try {
        decode(bytes, info_.features[i], out[i].tensor);
      } catch (const Error& error) {
        if (error.code() == ExitCode::data) throw BadSample(named(file, error));
        throw Error(error.code(), named(file, error));
      }
    }
  }

  void add_identities(std::int64_t id, std::vector<std::uint64_t>& out) const override {
    std::string place;
    for (std::size_t i = 0; i < width_; ++i) {
      const ImageFile& file = image(id, i);
      place += fmt::format("{}/{}\n", places_.at(file.tree), file.entry.name);
    }
    out.push_back(identity_of(place));
    if (!contents_.empty()) out.push_back(contents_.at(id));
  }

  void read_without_images(std::int64_t id, Sample& out) const override {
    prepare_names(out, info_.features);
    if (!labels_.empty()) set_label(out.back().tensor, labels_.at(id));
    if (numbers_.empty()) return;
    auto number = numbers_.begin() + id * (std::ssize(numbers_) / samples_);
    for (std::size_t i = width_; i < out.size(); ++i) {
      prepare(out[i].tensor, info_.features[i].spec);
      for (float& value : out[i].tensor.as<float>()) value = *number++;
    }
  }

  bool read_encoded(std::int64_t id, std::vector<EncodedFeature>& out) const override {
    const auto& features = info_.features;
    const auto is_mask = [](const Feature& feature) { return feature.kind == Feature::Kind::mask; };
    if (labels_.empty() || std::any_of(features.begin(), features.end(), is_mask)) return false;
    out.resize(info_.features.size());
    for (std::size_t i = 0; i < width_; ++i) {
      const ImageFile& file = image(id, i);
      std::vector<std::byte> scratch;
      const auto bytes = file.tree->read(file.entry, 0, file.entry.size, scratch);
      out[i].is_file = true;
      out[i].file.assign(bytes.begin(), bytes.end());
    }
    out.back().is_file = false;
    set_label(out.back().tensor, labels_.at(id));
    return true;
  }

 private:
  static std::string named(const ImageFile& file, const Error& error) {
    return fmt::format("{}: {}: {}", file.tree->path(), file.entry.name, error.what());
  }
  static std::span<const std::byte> bytes_of(const ImageFile& file, std::vector<std::byte>& scratch) {
    try {
      return file.tree->read(file.entry, 0, file.entry.size, scratch);
    } catch (const Error& error) {
      throw Error(error.code(), named(file, error));
    }
  }
  void decode(std::span<const std::byte> bytes, const Feature& feature, Tensor& out) const {
    if (feature.kind == Feature::Kind::mask) return decode_mask(bytes, mask_code_, out);
    decode_image(bytes, feature.spec.shape.back(), out);
  }
  const ImageFile& image(std::int64_t id, std::size_t feature) const { return images_.at(id * width_ + feature); }

  DataSetInfo info_;
  std::vector<std::int32_t> labels_;  ///< empty: there are none
  std::vector<float> numbers_;        ///< [samples, targets]
  std::vector<std::uint64_t> contents_;
  std::int64_t samples_;
  std::size_t width_;  ///< images of a sample
  MaskCode mask_code_;
  ByteCounter counter_;
  std::vector<std::shared_ptr<const FileTree>> trees_;
  std::map<const FileTree*, std::string> places_;
  std::vector<ImageFile> images_;   ///< [samples, images of a sample]
  std::vector<std::string> names_;  ///< empty: the first image's
};

/// What the check of one sample has found.
struct Finding {
  std::vector<ImageHeader> headers;
  std::string fault;
  std::string content;  ///< SHA-256, if the digest includes it
  std::string classes;  ///< that occur in its mask, a byte each, kIgnoredPixel too; empty: it was not decoded
  std::map<std::uint8_t, std::int32_t> colors = {};  ///< MaskColors of those that occur
  std::uint8_t brightest = 0;  ///< of the pixels of images with more than 8 bits, where they are decoded
};

/// How much of each file is read, depending on the size of the whole set.
struct Depth {
  bool decode = false;
  bool content = false;
};

Depth depth_for(const ImageCandidates& candidates) {
  std::uint64_t total = 0;
  for (const auto& sample : candidates.samples) {
    for (const auto& image : sample.images) total += image.entry.size;
  }
  return {total <= kFullCheckBytes, total <= kFullDigestBytes};
}

/// Reads only the header and the end.
ImageHeader check_lightly(const ImageFile& image) {
  std::vector<std::byte> head, tail;
  const auto size = image.entry.size, tail_size = std::min(size, kTailBytes);
  auto begin = image.tree->read(image.entry, 0, std::min(size, kHeadBytes), head);
  try {
    const ImageHeader header = image_header(begin);
    if (has_end(begin, image.tree->read(image.entry, size - tail_size, tail_size, tail))) return header;
  } catch (const Error&) {
    if (size <= kHeadBytes) throw;
  }
  // A long preview may come before the header, or other bytes after the end.
  begin = image.tree->read(image.entry, 0, size, head);
  const ImageHeader header = image_header(begin);
  Tensor decoded;
  decode_image(begin, header.channels, decoded);
  return header;
}

/// A mask has the size of the sample's first image.
std::string fault_of_mask(const ImageCandidates& candidates, const Finding& finding) {
  const ImageSize mask = finding.headers[candidates.mask].size,
                  image = finding.headers[candidates.mask == 0 ? 1 : 0].size;
  if (mask == image) return "";
  return fmt::format("expected a mask of the image's size, {} x {}, found {} x {}", image.width, image.height,
                     mask.width, mask.height);
}

/// Decodes a mask and notes what occurs in it.
void look_at_mask(std::span<const std::byte> bytes, const MaskCode& code, Finding& finding) {
  Tensor decoded;
  MaskColors colors;
  colors.fill(-1);
  decode_mask(bytes, code, decoded, &colors);
  for (std::size_t value = 0; value < colors.size(); ++value) {
    if (colors[value] >= 0) finding.colors[value] = colors[value];
  }
  std::array<bool, 256> seen{};
  for (const std::uint8_t value : decoded.as<std::uint8_t>()) seen[value] = true;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i]) finding.classes += static_cast<char>(i);
  }
}

ImageHeader check_image(const ImageFile& image, Depth depth, Sha256& content, std::uint8_t& brightest) {
  if (!depth.content) return check_lightly(image);
  std::vector<std::byte> scratch;
  const auto bytes = image.tree->read(image.entry, 0, image.entry.size, scratch);
  const ImageHeader header = image_header(bytes);
  content.add(bytes);
  if (depth.decode || !has_end(bytes, bytes.last(std::min<std::size_t>(bytes.size(), kTailBytes)))) {
    Tensor decoded;
    decode_image(bytes, header.channels, decoded);
    const auto pixels = decoded.as<std::uint8_t>();
    if (header.deep) brightest = std::max(brightest, *std::max_element(pixels.begin(), pixels.end()));
  }
  return header;
}

/// Of a large set, kSpotChecks masks are decoded.
ImageHeader check_mask(const ImageCandidates& candidates, const ImageFile& mask, std::size_t index, Depth depth,
                       Finding& finding, Sha256& content) {
  const std::size_t apart = 1 + candidates.samples.size() / kSpotChecks;
  ImageHeader header;
  if (depth.decode || index % apart == 0) {
    std::vector<std::byte> scratch;
    const auto bytes = mask.tree->read(mask.entry, 0, mask.entry.size, scratch);
    look_at_mask(bytes, candidates.mask_code, finding);
    if (depth.content) content.add(bytes);
    header = image_header(bytes);
  } else {
    header = check_image(mask, depth, content, finding.brightest);
  }
  header.channels = 1;  // of a palette, too
  return header;
}

Finding check_sample(const ImageCandidates& candidates, std::size_t index, Depth depth) {
  const ImageSample& sample = candidates.samples[index];
  Finding finding;
  finding.fault = sample.fault;
  Sha256 content;
  for (const auto& image : sample.images) {
    if (!finding.fault.empty()) break;
    try {
      const bool is_mask = !candidates.mask_classes.empty() && finding.headers.size() == candidates.mask;
      finding.headers.push_back(is_mask ? check_mask(candidates, image, index, depth, finding, content)
                                        : check_image(image, depth, content, finding.brightest));
    } catch (const Error& error) {
      if (error.code() != ExitCode::data) throw;
      const bool named = image.entry.name != sample.name;
      finding.fault = named ? fmt::format("{}: {}", image.entry.name, error.what()) : error.what();
    }
  }
  if (finding.fault.empty() && !candidates.mask_classes.empty()) finding.fault = fault_of_mask(candidates, finding);
  if (depth.content) finding.content = content.hex();
  return finding;
}

std::string write_findings(const std::vector<Finding>& findings) {
  std::string out;
  for (const auto& finding : findings) {
    append_text(out, finding.fault);
    append_text(out, finding.content);
    append_text(out, finding.classes);
    append(out, static_cast<std::uint64_t>(finding.colors.size()));
    for (const auto& [value, color] : finding.colors) {
      append(out, value);
      append(out, color);
    }
    append(out, finding.brightest);
    append(out, static_cast<std::uint64_t>(finding.headers.size()));
    for (const auto& [size, channels, deep, turned] : finding.headers) {
      for (const std::int64_t number : {size.height, size.width, channels}) append(out, number);
      for (const bool is : {deep, turned}) append(out, static_cast<std::uint8_t>(is));
    }
  }
  return out;
}

std::vector<Finding> read_findings(const std::string& note, std::size_t count) {
  ByteReader reader(note, "noted findings end too early");
  std::vector<Finding> findings(count);
  for (auto& finding : findings) {
    finding.fault = reader.text();
    finding.content = reader.text();
    finding.classes = reader.text();
    for (auto left = reader.value<std::uint64_t>(); left > 0; --left) {
      const auto value = reader.value<std::uint8_t>();
      finding.colors[value] = reader.value<std::int32_t>();
    }
    finding.brightest = reader.value<std::uint8_t>();
    finding.headers.resize(reader.value<std::uint64_t>());
    for (auto& [size, channels, deep, turned] : finding.headers) {
      for (std::int64_t* number : {&size.height, &size.width, &channels}) *number = reader.value<std::int64_t>();
      for (bool* is : {&deep, &turned}) *is = reader.value<std::uint8_t>() != 0;
    }
  }
  return findings;
}

/// Checks every image, or uses the notes.
std::vector<Finding> find(const ImageCandidates& candidates, const Depth& depth, const IndexOptions& options) {
  const std::size_t count = candidates.samples.size();
  const std::string note = candidates.mask_classes.empty()
                               ? "images"
                               : fmt::format("images, of which {} are masks: {}",
                                             candidates.feature_names[candidates.mask], candidates.mask_code.text());
  return read_findings(noted(options.notes, note,
                             [&] {
                               std::vector<Finding> findings(count);
                               parallel_for(count, options.threads,
                                            [&](std::size_t i) { findings[i] = check_sample(candidates, i, depth); });
                               return write_findings(findings);
                             }),
                       count);
}

/// Moves the good samples to the front and drops the others; returns the faults.
std::vector<std::string> drop_bad(std::vector<ImageSample>& samples, std::vector<Finding>& findings) {
  std::vector<std::string> faults;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!findings[i].fault.empty()) {
      faults.push_back(fmt::format("{}: {}", samples[i].name, findings[i].fault));
      continue;
    }
    if (kept != i) {
      samples[kept] = std::move(samples[i]);
      findings[kept] = std::move(findings[i]);
    }
    ++kept;
  }
  samples.resize(kept);
  findings.resize(kept);
  return faults;
}

/// About images that are rarely meant as they are read.
std::vector<std::string> image_warnings(const std::vector<Finding>& findings) {
  constexpr std::uint8_t kFewBits = 64;  // 14 of 16 bits
  std::size_t images = 0, turned = 0, deep = 0;
  std::uint8_t brightest = 0;
  for (const auto& finding : findings) {
    brightest = std::max(brightest, finding.brightest);
    for (const auto& header : finding.headers) {
      ++images;
      turned += header.turned ? 1 : 0;
      deep += header.deep ? 1 : 0;
    }
  }
  std::vector<std::string> warnings;
  if (auto warning = orientation_warning(turned, images); !warning.empty()) warnings.push_back(std::move(warning));
  if (deep > 0 && brightest > 0 && brightest <= kFewBits) {
    warnings.push_back(fmt::format(
        "{} of {} images have 16 bits and are nearly black: scaled to 8 bits, no value is above {} of 255, as "
        "if they held 14 bits or fewer; multiply their values first",
        deep, images, brightest));
  }
  return warnings;
}

/// For the whole set and all columns: grey images become colour images if any image is in colour.
std::int64_t max_channels(const std::vector<Finding>& findings) {
  std::int64_t max = 0;
  for (const auto& finding : findings) {
    for (const auto& header : finding.headers) max = std::max(max, header.channels);
  }
  return max;
}

Feature image_feature(const std::string& name, std::size_t index, const std::vector<Finding>& findings,
                      const std::vector<std::string>& mask_classes, const SourceOptions& source,
                      const IndexOptions& options) {
  ImageSize common = findings.front().headers.at(index).size;
  for (const auto& finding : findings) {
    if (finding.headers.at(index).size != common) common = {};
  }
  if (!mask_classes.empty()) {
    return {name, Feature::Kind::mask, {DType::u8, {common.height, common.width, 1}}, mask_classes};
  }
  const std::int64_t channels = channels_like(options.like, name, max_channels(findings), describe(source.paths));
  return {name, Feature::Kind::image, {DType::u8, {common.height, common.width, channels}}};
}

/// What is said of a set whose masks have one class, or none, beside the value that does not count.
std::string lone_class_text(const ImageCandidates& candidates, const std::vector<bool>& seen, bool trains) {
  const auto& names = candidates.mask_classes;
  const MaskCode& code = candidates.mask_code;
  std::size_t lone = 0;
  while (lone < names.size() && !seen[lone]) ++lone;
  if (lone == names.size()) {
    return fmt::format("the masks hold {} only, which does not count; name another value as `ignored`", code.ignored());
  }
  const std::string told =
      fmt::format("the masks hold {} and {} only, and {} does not count, so '{}' is all there is{}",
                  code.value_of(lone), code.ignored(), code.ignored(), names[lone], trains ? " to learn" : "");
  if (names.size() != 2) return told + "; name another value as `ignored`";
  std::int64_t values[2] = {code.value_of(lone), code.ignored()};
  if (lone == 1) std::swap(values[0], values[1]);
  return fmt::format("{}; if {} is '{}', add `values: [{}, {}]`", told, code.ignored(), names[1 - lone], values[0],
                     values[1]);
}

/// That a pixel's value has one color in one mask and another in another, as where each has a palette of its own; "" if
/// none has.
std::string warning_of_colors(const ImageCandidates& candidates, const std::vector<Finding>& findings) {
  struct First {
    std::int32_t color;
    std::string mask;
  };
  std::map<std::uint8_t, First> firsts;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    for (const auto& [value, color] : findings[i].colors) {
      const std::string& mask = candidates.samples[i].images.at(candidates.mask).entry.name;
      const auto& first = firsts.try_emplace(value, First{color, mask}).first->second;
      if (first.color == color) continue;
      return fmt::format(
          "masks: {} stands for #{:06x} in the palette of {} and for #{:06x} in that of {}: the number is the class, "
          "whatever its color; write all masks with one palette",
          value, first.color, first.mask, color, mask);
    }
  }
  return "";
}

/// Throws Error(data) where masks have one class only because a value is ignored, as those of 0 and 255 have; in
/// another set than the training set, which may be small, only where these are the values by default. Warns of classes
/// that never occur, where all masks were decoded.
void check_classes_of_masks(ImageCandidates& candidates, const std::vector<Finding>& findings,
                            const SourceOptions& source, const IndexOptions& options) {
  const auto& names = candidates.mask_classes;
  std::vector<bool> seen(256);
  bool all = true;
  for (const auto& finding : findings) {
    for (const char c : finding.classes) seen[static_cast<unsigned char>(c)] = true;
    all = all && !finding.classes.empty();
  }
  std::vector<std::string> absent;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!seen[i]) absent.push_back(names[i]);
  }
  const bool trains = options.like == nullptr;
  const bool by_default = names.size() == 2 && !source.attributes.has("values") && !source.attributes.has("ignored");
  if ((trains || by_default) && names.size() > 1 && absent.size() + 1 >= names.size() && seen[kIgnoredPixel]) {
    throw Error(ExitCode::data,
                fmt::format("{}: {}", describe(source.paths), lone_class_text(candidates, seen, trains)));
  }
  if (auto warning = warning_of_colors(candidates, findings); !warning.empty())
    candidates.warnings.push_back(std::move(warning));
  if (all && !absent.empty()) {
    candidates.warnings.push_back(
        fmt::format("masks: no pixel is of {} of {} classes: {}", absent.size(), names.size(), few_of(absent, 10)));
  }
}

std::string digest_of(const ImageCandidates& candidates, const std::vector<Finding>& findings) {
  Sha256 digest;
  digest.add("images 1\n");
  for (const auto& name : candidates.feature_names) digest.add(name + "\n");
  const std::string code = candidates.mask_code.text();
  if (code != MaskCode(candidates.mask_classes.size()).text()) digest.add(code + "\n");
  for (const auto& name : candidates.mask_classes) digest.add("class " + name + "\n");
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const auto& sample = candidates.samples[i];
    digest.add(sample.class_name + "\n");
    for (const auto& image : sample.images) {
      // Only the last component of the name, so that a folder and an archive of it are the same set.
      digest.add(fmt::format("{} {}\n", image.entry.name.substr(image.entry.name.rfind('/') + 1), image.entry.size));
    }
    digest.add(findings[i].content);
    const std::vector<float> numbers(sample.numbers.begin(), sample.numbers.end());
    digest.add(std::as_bytes(std::span(numbers)));
    if (!std::equal(numbers.begin(), numbers.end(), sample.numbers.begin())) {  // what fp32 cannot hold
      digest.add(std::as_bytes(std::span(sample.numbers)));
    }
  }
  return digest.hex();
}

/// One feature of all numbers, or, where the job has a loss for each, one for each.
std::vector<Feature> number_features(const ImageCandidates& candidates, const SourceOptions& source) {
  const auto feature = [](const std::string& name, const Shape& shape) {
    return Feature{name, Feature::Kind::tensor, {DType::f32, shape}};
  };
  const auto& targets = candidates.targets;
  if (targets.empty()) return {};
  if (targets.size() == 1) return {feature("label", {})};
  if (!source.targets_apart) {
    Feature label = feature("label", {std::ssize(targets)});
    label.classes = targets;
    return {label};
  }
  std::vector<Feature> features;
  for (const auto& name : targets) features.push_back(feature(name, {}));
  return features;
}

std::vector<double> target_numbers(const ImageCandidates& candidates) {
  std::vector<double> numbers;
  for (const auto& sample : candidates.samples) {
    numbers.insert(numbers.end(), sample.numbers.begin(), sample.numbers.end());
  }
  return numbers;
}

/// Takes the offsets of the training set off the numbers, or their own if this is it.
void take_offsets(const SourceOptions& source, const DataSetInfo* like, ImageCandidates& candidates,
                  DataSetInfo& info) {
  const std::size_t width = candidates.targets.size();
  if (width == 0) return;
  const auto numbers = target_numbers(candidates);
  const auto offsets = like != nullptr          ? offsets_of(like->features, width)
                       : source.targets_centred ? target_offsets(numbers, width)
                                                : std::vector<double>(width);
  set_offsets(info.features, offsets);
  auto warnings = like == nullptr ? constant_warnings(numbers, candidates.targets) : std::vector<std::string>();
  for (auto& warning : precision_warnings(numbers, candidates.targets, offsets)) warnings.push_back(std::move(warning));
  info.warnings.insert(info.warnings.end(), warnings.begin(), warnings.end());
  for (auto& sample : candidates.samples) {
    for (std::size_t i = 0; i < width; ++i) sample.numbers[i] -= offsets[i];
  }
}

std::vector<TargetRange> image_ranges(const std::vector<Feature>& features, const ImageCandidates& candidates) {
  const auto numbers = target_numbers(candidates);
  return target_ranges(features, candidates.targets, numbers,
                       [&](std::size_t sample) { return candidates.samples[sample].name; });
}

/// Another set predicts what the training set does; of other names, a warning.
void require_targets_like(const DataSetInfo& like, const std::vector<Feature>& features, const SourceOptions& source,
                          std::vector<std::string>& warnings) {
  const auto targets = [](std::vector<Feature> all) {
    std::erase_if(all, [](const Feature& feature) { return feature.kind != Feature::Kind::tensor; });
    return all;
  };
  const auto alike = [](const Feature& a, const Feature& b) { return a.name == b.name && a.spec == b.spec; };
  const auto ours = targets(features), theirs = targets(like.features);
  if (!std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(), alike)) {
    throw Error(ExitCode::data, fmt::format("{}: expected the targets of the training set; give both sources the same "
                                            "`target`",
                                            describe(source.paths)));
  }
  if (ours.empty() || ours.front().classes == theirs.front().classes) return;
  warnings.push_back(fmt::format("the target is {}, that of the training set {}", few_of(ours.front().classes, 10),
                                 few_of(theirs.front().classes, 10)));
}

}  // namespace

std::unique_ptr<DataSet> make_encoded_images(ImageCandidates candidates, const SourceOptions& source,
                                             const IndexOptions& options) {
  const std::size_t all = candidates.samples.size();
  const Depth depth = depth_for(candidates);
  std::vector<Finding> findings = find(candidates, depth, options);
  DataSetInfo info;
  info.format = candidates.format;
  info.source = describe(source.paths);
  info.skipped = drop_bad(candidates.samples, findings);
  judge_bad_samples(source, info.skipped, all);
  if (findings.empty()) {
    throw Error(ExitCode::data, fmt::format("{}: holds no image{}", info.source,
                                            all == 0 ? "" : fmt::format("; all {} samples are bad", all)));
  }
  for (std::size_t i = 0; i < candidates.feature_names.size(); ++i) {
    const auto& mask_classes = i == candidates.mask ? candidates.mask_classes : std::vector<std::string>();
    info.features.push_back(image_feature(candidates.feature_names[i], i, findings, mask_classes, source, options));
  }
  if (candidates.has_labels) info.features.push_back({"label", Feature::Kind::label, {DType::i32, {}}});
  for (auto& feature : number_features(candidates, source)) info.features.push_back(std::move(feature));
  if (options.like != nullptr) require_targets_like(*options.like, info.features, source, candidates.warnings);
  info.class_names = classes_in_order(candidates.class_names, source, options);
  info.class_counts.assign(info.class_names.size(), 0);
  std::vector<std::int32_t> labels;
  for (const auto& sample : candidates.samples) {
    if (!candidates.has_labels) break;
    labels.push_back(class_of(info.class_names, sample.class_name, sample.name));
    ++info.class_counts[labels.back()];
  }
  if (!candidates.mask_classes.empty()) check_classes_of_masks(candidates, findings, source, options);
  info.warnings = candidates.warnings;
  if (options.like == nullptr) {
    info.warnings.insert(info.warnings.end(), candidates.class_warnings.begin(), candidates.class_warnings.end());
  }
  for (auto& warning : image_warnings(findings)) info.warnings.push_back(std::move(warning));
  warn_of_skipped(all, info);
  if (options.targets != nullptr) *options.targets = image_ranges(info.features, candidates);
  take_offsets(source, options.like, candidates, info);
  info.content_in_digest = depth.content;
  info.digest = digest_of(candidates, findings);
  std::vector<std::uint64_t> contents;
  for (const auto& finding : findings) {
    if (depth.content) contents.push_back(identity_of(finding.content));
  }
  return std::make_unique<EncodedImages>(std::move(candidates), std::move(info), std::move(labels),
                                         std::move(contents));
}

}  // namespace lockstep::data
