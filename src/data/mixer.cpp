#include "data/mixer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/vectorize.hpp"
#include "data/exact_math.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

namespace {

LOCKSTEP_VECTORIZED void mix_numbers(float keeps, float* own, const float* other, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) own[i] = keeps * own[i] + (1.0F - keeps) * other[i];
}

[[noreturn]] void refuse_mix(const MixOptions& options, const std::string& what) {
  const std::string where = options.place.text();
  throw Error(ExitCode::configuration, fmt::format("{}: {}", where.empty() ? "job.data.mix" : where, what));
}

}  // namespace

double symmetric_beta(double alpha, RandomStream& random) {
  const auto log_of_power = [&] {  // of U^(1 / alpha), U in (0, 1]
    return exact_log(((random.word() >> 8) + 1) * 0x1p-24) / alpha;
  };
  while (true) {
    const double x = log_of_power(), y = log_of_power();
    if (exact_exp(x) + exact_exp(y) > 1) continue;
    return x > y ? 1 / (1 + exact_exp(y - x)) : 1 - 1 / (1 + exact_exp(x - y));
  }
}

Mixer::Mixer(const MixOptions& options, std::uint64_t seed, const std::vector<Feature>& features,
             std::int64_t micro_batch_samples)
    : options_(options), key_(mix(seed, hash_name("mix"))) {
  std::size_t images = 0, labels = 0;
  for (std::size_t i = 0; i < features.size(); ++i) {
    const Feature& feature = features[i];
    if (feature.kind == Feature::Kind::image) {
      ++images;
      image_ = i;
      height_ = feature.spec.shape[0], width_ = feature.spec.shape[1], channels_ = feature.spec.shape[2];
    } else if (feature.name == "label" && feature.spec.dtype == DType::f32 && feature.spec.shape.size() == 1) {
      ++labels;
      label_ = i;
      classes_ = feature.spec.shape[0];
    }
  }
  if (images != 1 || labels != 1 || features.size() != 2) {
    std::string names;
    for (const Feature& feature : features) names += (names.empty() ? "" : ", ") + feature.name;
    refuse_mix(options, fmt::format("expected samples of one image and a class, found {}", names));
  }
  if (micro_batch_samples < 2) {
    refuse_mix(
        options,
        "expected micro-batches of 2 samples and more, found 1: a sample is mixed with another of its micro-batch; "
        "set fewer micro-batches, or a larger batch_size");
  }
}

Mixer::Draw Mixer::draw(std::int64_t id, std::uint64_t epoch) const {
  RandomStream random(mix(key_, epoch), id);
  Draw draw;
  const float chance = random.unit(), kind = random.unit();
  if (chance >= options_.probability) return draw;
  draw.cut = options_.cutmix > 0 && (options_.mixup <= 0 || kind < 0.5F);
  const double keeps = symmetric_beta(draw.cut ? options_.cutmix : options_.mixup, random);
  draw.keeps = keeps;
  if (!draw.cut) return draw;
  const double side = std::sqrt(1 - keeps);
  const auto cut = [&](std::int64_t size, std::int64_t& first, std::int64_t& last) {
    const std::int64_t half = side * size / 2;
    const std::int64_t center = random.below(size);
    first = std::max<std::int64_t>(0, center - half), last = std::min(size, center + half);
  };
  cut(height_, draw.top, draw.bottom);
  cut(width_, draw.left, draw.right);
  const float area = (draw.bottom - draw.top) * (draw.right - draw.left);
  draw.keeps = 1.0F - area / (height_ * width_);  // what is left after the edges
  return draw;
}

void Mixer::blend(const Draw& draw, float* image, const float* partner) const {
  if (!draw.cut) return mix_numbers(draw.keeps, image, partner, height_ * width_ * channels_);
  for (std::int64_t y = draw.top; y < draw.bottom; ++y) {
    const std::int64_t first = (y * width_ + draw.left) * channels_;
    std::copy_n(partner + first, (draw.right - draw.left) * channels_, image + first);
  }
}

void Mixer::mix_micro_batch(std::vector<NamedTensor>& tensors, std::span<const std::int64_t> ids, std::uint64_t epoch,
                            std::vector<float>& scratch) const {
  const std::int64_t pixels = height_ * width_ * channels_;
  scratch.resize(pixels + classes_);
  float* const images = tensors[image_].tensor.as<float>().data();
  float* const labels = tensors[label_].tensor.as<float>().data();
  for (std::int64_t i = 0, j = std::ssize(ids) - 1; i < j; ++i, --j) {
    std::copy_n(images + i * pixels, pixels, scratch.data());
    std::copy_n(labels + i * classes_, classes_, scratch.data() + pixels);
    const auto mix_one = [&](std::int64_t own, const float* image, const float* label) {
      const Draw drawn = draw(ids[own], epoch);
      if (drawn.keeps == 1) return;
      blend(drawn, images + own * pixels, image);
      mix_numbers(drawn.keeps, labels + own * classes_, label, classes_);
    };
    mix_one(i, images + j * pixels, labels + j * classes_);
    mix_one(j, scratch.data(), scratch.data() + pixels);
  }
}

}  // namespace lockstep::data
