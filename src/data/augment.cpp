#include "data/augment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/vectorize.hpp"
#include "data/augment_steps/steps.hpp"
#include "lockstep/error.hpp"

namespace lockstep {

namespace {

void mirror(std::uint8_t* row, std::int64_t width, std::int64_t channels) {
  if (channels == 1) {
    std::reverse(row, row + width);
    return;
  }
  for (std::int64_t left = 0, right = width - 1; left < right; ++left, --right) {
    std::swap_ranges(row + left * channels, row + (left + 1) * channels, row + right * channels);
  }
}

void shift(Image& image, const PixelMove& move, ImageSize size) {
  const ImageView old = image.replace(size.height, size.width);
  const std::int64_t c = old.channels, right = move.right;
  // The columns that exist in the old image.
  const std::int64_t first = std::clamp<std::int64_t>(-right, 0, size.width) * c;
  const std::int64_t last = std::clamp<std::int64_t>(old.width - right, 0, size.width) * c;
  for (std::int64_t y = 0; y < size.height; ++y) {
    std::uint8_t* row = image.row(y);
    const std::int64_t source = y + move.down;
    std::memset(row, image.outside(), static_cast<std::size_t>(size.width * c));
    if (source < 0 || source >= old.height || first >= last) continue;
    std::memcpy(row + first, old.row(source) + right * c + first, static_cast<std::size_t>(last - first));
  }
}

void blacken(Image& image, const PixelRectangle& hole) {
  const std::int64_t c = image.channels();
  const std::int64_t top = std::max(0, hole.top), bottom = std::min<std::int64_t>(image.height(), hole.bottom);
  const std::int64_t left = std::max(0, hole.left), right = std::min<std::int64_t>(image.width(), hole.right);
  if (left >= right) return;
  for (std::int64_t y = top; y < bottom; ++y) {
    std::memset(image.row(y) + left * c, 0, static_cast<std::size_t>((right - left) * c));
  }
}

}  // namespace

void MoveStep::apply(Image& image, RandomStream& random) const {
  const ImageSize from{image.height(), image.width()}, to = output_size(from);
  const PixelMove move = draw(from, random);
  if (move.flip != 0) {
    for (std::int64_t y = 0; y < from.height; ++y) mirror(image.row(y), from.width, image.channels());
  }
  if (move.down != 0 || move.right != 0 || to != from) shift(image, move, to);
  if (!image.is_mask()) blacken(image, move.hole);
}

AugmentRegistry built_in_augmentations() {
  AugmentRegistry registry;
  data::add_built_in(registry);
  return registry;
}

namespace data {

namespace {

/// `factor` and `shift` have a value for each of the `width` numbers in a row.
LOCKSTEP_VECTORIZED void normalize_rows(const std::uint8_t* in, const float* factor, const float* shift, float* out,
                                        std::int64_t rows, std::int64_t width) {
  for (std::int64_t y = 0; y < rows; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      out[y * width + x] = in[y * width + x] * factor[x] + shift[x];
    }
  }
}

std::string known_steps(const AugmentRegistry& registry) {
  std::string text;
  for (const AugmentDef* def : registry.all()) text += (text.empty() ? "" : ", ") + def->name;
  return text;
}

std::string prefix(const Place& place) {
  return place.line > 0 ? place.text() + ": " : "";
}

double channel_value(const std::vector<double>& values, std::int64_t channel, double default_value) {
  if (values.empty()) return default_value;
  return values[values.size() == 1 ? 0 : static_cast<std::size_t>(channel)];
}

}  // namespace

Pipeline::Pipeline(std::vector<Feature> features, const PipelineOptions& options, const AugmentRegistry& registry)
    : inputs_(std::move(features)) {
  add_steps(options, registry);
  for (const Feature& input : inputs_) {
    stored_.push_back(stored_as(input));
    const bool is_mask = input.kind == Feature::Kind::mask;
    if (is_mask) require_masks_moved(options, registry, input);
    outputs_.push_back(input.kind == Feature::Kind::image || is_mask ? output_of(input) : input);
    scales_.push_back(input.kind == Feature::Kind::image ? scale_for(outputs_.back(), options) : Scale{});
    if (input.kind == Feature::Kind::columns) {
      set_columns(input, options);
      outputs_.back().spec.dtype = DType::f32;
    }
  }
}

void Pipeline::add_steps(const PipelineOptions& options, const AugmentRegistry& registry) {
  for (const AugmentOptions& option : options.steps) {
    const AugmentDef* def = registry.find(option.name);
    if (def == nullptr) {
      throw Error(ExitCode::configuration, fmt::format("{}expected an augmentation, one of {}; found '{}'",
                                                       prefix(option.place), known_steps(registry), option.name));
    }
    const std::string what = fmt::format("{}augmentation '{}'", prefix(option.place), option.name);
    const Attributes attributes = complete(def->attributes, option.attributes, what);
    auto step = def->make(attributes);
    const auto* moves = dynamic_cast<const MoveStep*>(step.get());
    const std::uint64_t key = mix(mix(options.seed, hash_name(option.name)), steps_.size());
    if (!def->random && fixed_steps_ == steps_.size()) ++fixed_steps_;
    steps_.push_back({std::move(step), moves, key, option.name});
  }
}

// A step of somebody's own may blend pixels, which makes other classes of them.
void Pipeline::require_masks_moved(const PipelineOptions& options, const AugmentRegistry& registry,
                                   const Feature& mask) {
  for (const AugmentOptions& option : options.steps) {
    const AugmentDef& def = *registry.find(option.name);
    const auto step = def.make(complete(def.attributes, option.attributes, option.name));
    if (def.masks || dynamic_cast<const MoveStep*>(step.get()) != nullptr) continue;
    throw Error(ExitCode::configuration,
                fmt::format("{}expected steps that know of masks, since '{}' is one, found '{}'; set AugmentDef::masks "
                            "when its apply() does",
                            prefix(option.place), mask.name, option.name));
  }
}

Feature Pipeline::output_of(const Feature& input) const {
  ImageSize size{input.spec.shape.at(0), input.spec.shape.at(1)};
  for (const Step& step : steps_) size = step.step->output_size(size);
  if (size.height <= 0 || size.width <= 0) {
    throw Error(ExitCode::configuration,
                fmt::format("job.data.prepare: the images of '{}' differ in size, but a network needs one size; add "
                            "`resize` with a height and a width, or `center_crop`",
                            input.name));
  }
  if (input.kind == Feature::Kind::mask) {
    return {input.name, input.kind, {DType::i32, {size.height, size.width}}, input.classes};
  }
  return {input.name, input.kind, {DType::f32, {size.height, size.width, input.spec.shape.at(2)}}};
}

Pipeline::Scale Pipeline::scale_for(const Feature& output, const PipelineOptions& options) {
  const std::int64_t width = output.spec.shape[1], channels = output.spec.shape[2];
  for (const auto* values : {&options.mean, &options.stddev}) {
    if (values->size() > 1 && static_cast<std::int64_t>(values->size()) != channels) {
      throw Error(ExitCode::configuration,
                  fmt::format("job.data.normalize: expected {} values, one for each channel of '{}', found {}",
                              channels, output.name, values->size()));
    }
  }
  Scale scale;
  for (std::int64_t i = 0; i < width * channels; ++i) {
    const double mean = channel_value(options.mean, i % channels, 0);
    const double stddev = channel_value(options.stddev, i % channels, 1);
    scale.factor.push_back(1 / (255 * stddev));
    scale.shift.push_back(-mean / stddev);
  }
  return scale;
}

void Pipeline::set_columns(const Feature& columns, const PipelineOptions& options) {
  const std::size_t elements = columns.spec.shape.back();
  const bool given = !options.mean.empty();
  if (given && options.mean.size() != elements) {
    throw Error(ExitCode::configuration,
                fmt::format("job.data.normalize: expected {} values, one for each element of the table's columns, "
                            "found {}; leave it at auto",
                            elements, options.mean.size()));
  }
  mean_ = given ? options.mean : std::vector<double>(elements, 0);
  stddev_ = given ? options.stddev : std::vector<double>(elements, 1);
  std::replace(stddev_.begin(), stddev_.end(), 0.0, 1.0);  // of a constant column
}

RandomStream Pipeline::random_of(const Step& step, std::size_t index, std::int64_t id, std::uint64_t epoch) const {
  return {mix(step.key, epoch), static_cast<std::uint64_t>(id), static_cast<std::uint32_t>(index)};
}

void Pipeline::augment(const Tensor& image, std::size_t index, std::int64_t id, std::uint64_t epoch,
                       PipelineScratch& scratch) const {
  augment(image, index, id, epoch, steps_.size(), scratch);
}

void Pipeline::augment(const Tensor& image, std::size_t index, std::int64_t id, std::uint64_t epoch, std::size_t steps,
                       PipelineScratch& scratch) const {
  const Shape& shape = image.shape();
  if (image.dtype() != DType::u8 || shape.size() != 3) refuse_spec(image, index, id);
  scratch.image.assign({image.as<std::uint8_t>().data(), shape.at(0), shape.at(1), shape.at(2)});
  const bool is_mask = inputs_[index].kind == Feature::Kind::mask;
  scratch.image.set_mask(is_mask);
  const std::size_t drawn_as = is_mask ? first_image() : index;  // it moves as the image does
  for (std::size_t i = 0; i < steps; ++i) {
    RandomStream random = random_of(steps_[i], drawn_as, id, epoch);
    steps_[i].step->apply(scratch.image, random);
  }
}

std::size_t Pipeline::first_image() const {
  const auto found = std::find_if(inputs_.begin(), inputs_.end(),
                                  [](const Feature& input) { return input.kind == Feature::Kind::image; });
  return found == inputs_.end() ? 0 : static_cast<std::size_t>(found - inputs_.begin());
}

void Pipeline::write_mask(const Image& mask, std::size_t index, std::int64_t id, std::byte* output) const {
  const Shape& expected = outputs_[index].spec.shape;
  if (mask.height() != expected[0] || mask.width() != expected[1]) {
    throw Error(ExitCode::data,
                fmt::format("sample {}, '{}': expected a mask of {} after augmentation, found [{}, {}]", id,
                            outputs_[index].name, to_string(expected), mask.height(), mask.width()));
  }
  const std::uint8_t* const from = mask.view().data;
  std::copy_n(from, mask.height() * mask.width(), reinterpret_cast<std::int32_t*>(output));
}

void Pipeline::require_shape(const Image& image, const Feature& feature, std::int64_t id) {
  const Shape& expected = feature.spec.shape;
  if (image.height() == expected[0] && image.width() == expected[1] && image.channels() == expected[2]) return;
  throw Error(ExitCode::data,
              fmt::format("sample {}, '{}': expected an image of {} after augmentation, found [{}, {}, {}]", id,
                          feature.name, to_string(expected), image.height(), image.width(), image.channels()));
}

void Pipeline::write_image(const Image& image, std::size_t index, std::int64_t id, std::byte* output) const {
  const Shape& expected = outputs_[index].spec.shape;
  require_shape(image, outputs_[index], id);
  normalize_rows(image.view().data, scales_[index].factor.data(), scales_[index].shift.data(),
                 reinterpret_cast<float*>(output), expected[0], expected[1] * expected[2]);
}

void Pipeline::run(const Sample& sample, std::int64_t id, std::uint64_t epoch, PipelineScratch& scratch,
                   std::span<std::byte* const> outputs) const {
  LOCKSTEP_CHECK(sample.size() == inputs_.size(), fmt::format("sample {} has {} tensors", id, sample.size()));
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const Tensor& tensor = sample[i].tensor;
    if (inputs_[i].kind == Feature::Kind::image) {
      augment(tensor, i, id, epoch, scratch);
      write_image(scratch.image, i, id, outputs[i]);
      continue;
    }
    if (inputs_[i].kind == Feature::Kind::mask) {
      augment(tensor, i, id, epoch, scratch);
      write_mask(scratch.image, i, id, outputs[i]);
      continue;
    }
    if (inputs_[i].kind == Feature::Kind::columns) {
      write_columns(tensor, i, id, outputs[i]);
      continue;
    }
    copy(tensor, i, id, outputs[i]);
  }
}

void Pipeline::write_columns(const Tensor& row, std::size_t index, std::int64_t id, std::byte* output) const {
  const DType type = row.spec().dtype;  // checkpoints of earlier releases remember columns of f32
  if ((type != DType::f64 && type != DType::f32) || row.shape() != inputs_[index].spec.shape) {
    refuse_spec(row, index, id);
  }
  auto* const to = reinterpret_cast<float*>(output);
  const auto normalize = [&](const auto values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto value = static_cast<double>(values[i]);
      const std::size_t element = i % mean_.size();
      to[i] = std::isnan(value) ? 0.0F : static_cast<float>((value - mean_[element]) / stddev_[element]);
    }
  };
  type == DType::f64 ? normalize(row.as<double>()) : normalize(row.as<float>());
}

void Pipeline::refuse_spec(const Tensor& tensor, std::size_t index, std::int64_t id) const {
  const Feature& input = inputs_[index];
  const bool same_type = tensor.dtype() == input.spec.dtype;
  throw Error(ExitCode::data,
              fmt::format("sample {}, '{}': expected {}{}, found {}", id, input.name, same_type ? "shape " : "",
                          same_type ? to_string(input.spec.shape) : to_string(input.spec),
                          same_type ? to_string(tensor.shape()) : to_string(tensor.spec())));
}

void Pipeline::copy(const Tensor& tensor, std::size_t index, std::int64_t id, std::byte* output) const {
  if (tensor.spec() != inputs_[index].spec) refuse_spec(tensor, index, id);
  std::memcpy(output, tensor.bytes(), tensor.spec().bytes());
}

}  // namespace data

}  // namespace lockstep
