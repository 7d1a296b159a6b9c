// Augmentation: steps that change an image before the network sees it. For a step of your own, derive from AugmentStep,
// or from MoveStep if it only moves pixels, and add it to a registry; the job file then knows it by its name.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/attributes.hpp"
#include "lockstep/random.hpp"
#include "lockstep/registry.hpp"

namespace lockstep {

/// -1: differs between samples.
struct ImageSize {
  std::int64_t height = -1, width = -1;
  bool operator==(const ImageSize&) const = default;
};

/// A non-owning view of pixels: [height, width, channels], 0 ... 255.
struct ImageView {
  const std::uint8_t* data = nullptr;
  std::int64_t height = 0, width = 0, channels = 0;
  const std::uint8_t* row(std::int64_t y) const { return data + y * width * channels; }
};

/// An image that reuses its memory from sample to sample.
class Image {
 public:
  std::int64_t height() const { return height_; }
  std::int64_t width() const { return width_; }
  std::int64_t channels() const { return channels_; }
  ImageView view() const { return {pixels_.data(), height_, width_, channels_}; }
  [[nodiscard]] std::uint8_t* row(std::int64_t y) { return pixels_.data() + y * width_ * channels_; }
  [[nodiscard]] std::span<std::uint8_t> pixels() { return pixels_; }

  /// Whether pixels are numbers of classes (Feature::Kind::mask). A step takes the nearest pixel then, outside() where
  /// there is none, and leaves values alone.
  bool is_mask() const { return is_mask_; }
  void set_mask(bool is_mask) { is_mask_ = is_mask; }
  /// What lies outside of the image: black, or of masks what does not count.
  std::uint8_t outside() const { return is_mask_ ? 255 : 0; }

  /// Copies these pixels.
  void assign(const ImageView& source) {
    height_ = source.height, width_ = source.width, channels_ = source.channels;
    pixels_.assign(source.data, source.data + height_ * width_ * channels_);
  }

  /// Resizes the image; its new pixels are uninitialised. Returns the old ones, which can be read until the next
  /// replace().
  ImageView replace(std::int64_t height, std::int64_t width) {
    std::swap(pixels_, old_);
    const ImageView before{old_.data(), height_, width_, channels_};
    height_ = height, width_ = width;
    pixels_.resize(height * width * channels_);
    return before;
  }

 private:
  std::vector<std::uint8_t> pixels_, old_;
  std::int64_t height_ = 0, width_ = 0, channels_ = 0;
  bool is_mask_ = false;
};

/// One step. It must depend only on the image and on what it draws from `random`: that stream is keyed by the job's
/// seed, the step's name and position, the epoch and the sample, so the result is the same on any rank and thread.
class AugmentStep {
 public:
  virtual ~AugmentStep() = default;
  /// Thread-safe: several threads call it concurrently.
  virtual void apply(Image& image, RandomStream& random) const = 0;
  /// The size of apply()'s result for an input of this size. Throws Error(configuration) if the step cannot handle it.
  virtual ImageSize output_size(ImageSize input) const { return input; }
};

/// Rows top ... bottom - 1 and columns left ... right - 1; it may extend beyond the image.
struct PixelRectangle {
  std::int32_t top = 0, left = 0, bottom = 0, right = 0;
};

/// Where the pixels of the result come from: pixel (y, x) is pixel (y + down, x + right) of the input [height, width],
/// which is first mirrored left to right if `flip` is 1. It is black where the input has no such pixel, and in `hole`.
/// Masks have no hole.
struct PixelMove {
  std::int32_t height = 0, width = 0, flip = 0, down = 0, right = 0;
  PixelRectangle hole;
};

/// A step that only moves pixels or blackens them. It is drawn before any pixel is touched, so a GPU can carry it out
/// (docs/augmentation.md).
class MoveStep : public AugmentStep {
 public:
  /// Draws the move for an image of this size. Thread-safe: several threads call it concurrently.
  virtual PixelMove draw(ImageSize input, RandomStream& random) const = 0;
  void apply(Image& image, RandomStream& random) const final;
};

class AugmentDef {
 public:
  static constexpr const char* kNoun = "augmentation";
  std::string name;  ///< "crop"
  std::string doc;   ///< one line
  int order = 100;   ///< position in messages and on pages; equal ones are sorted by name
  std::vector<AttributeSpec> attributes;
  std::string shorthand;  ///< the attribute that a bare value sets: `rotate: 15`; empty: none
  bool random = true;     ///< false: the step draws nothing, and so may also be used in `prepare:`
  bool masks = false;     ///< its apply() knows of masks (Image::is_mask), as those of all MoveSteps do
  std::function<std::unique_ptr<AugmentStep>(const Attributes&)> make;
  const char* missing() const { return make ? "" : "make"; }
};

using AugmentRegistry = Registry<AugmentDef>;

/// flip, crop, resized_crop, resize, center_crop, rotate, color_jitter, cutout.
[[nodiscard]] AugmentRegistry built_in_augmentations();

}  // namespace lockstep
