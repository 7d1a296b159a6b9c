// `lockstep predict --to`: what a model makes of images where that is images again, as PNG files.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "cli/predict.hpp"
#include "core/errno_code.hpp"
#include "data/picture.hpp"
#include "lockstep/error.hpp"
#include "run/checkpoint/files.hpp"
#include "run/ensemble/combine.hpp"

namespace lockstep::cli {

namespace {

namespace fs = std::filesystem;

/// `values`: [height, width, channels] of `shape`, 0 black and 1 white; what lies beyond is cut off.
data::Picture picture_of(const std::vector<double>& values, const Shape& shape) {
  data::Picture picture(shape[0], shape[1], 0);
  const std::size_t channels = shape[2];
  const auto byte = [&](std::size_t pixel, std::size_t channel) {
    const double value = std::clamp(values[pixel * channels + channel], 0.0, 1.0);
    return static_cast<std::uint8_t>(std::lround(255 * value));
  };
  for (std::size_t i = 0; i * channels < values.size(); ++i) {
    for (std::size_t c = 0; c < 3; ++c) picture.pixels[3 * i + c] = byte(i, channels == 1 ? 0 : c);
  }
  return picture;
}

/// Scores of classes for each pixel, as many as a file can number.
bool predicts_mask(const train::LoadedModel& model) {
  const Shape& shape = model.prediction_shape();
  return ensemble::meaning_of(*model.outputs().front().loss) == ensemble::Meaning::classes && shape.size() == 3 &&
         shape[2] > 1 && shape[2] <= kIgnoredPixel;
}

/// The likeliest class of each pixel.
std::string mask_of(const std::vector<double>& values, const Shape& shape) {
  const std::size_t classes = shape[2];
  std::vector<std::uint8_t> mask;
  for (std::size_t at = 0; at < values.size(); at += classes) {
    mask.push_back(ensemble::largest_of(std::span(values).subspan(at, classes)));
  }
  return data::mask_png(mask, shape[0], shape[1]);
}

/// The path of each sample's picture. Throws Error(usage) for two of one name, Error(cannot_create) for one that is
/// there.
std::vector<std::string> paths_in(const std::string& folder, const std::vector<std::vector<std::string>>& files) {
  std::vector<std::string> paths;
  std::set<std::string> seen;
  for (const auto& sample : files) {
    const std::string path = (fs::path(folder) / fs::path(sample.front()).stem()).string() + ".png";
    if (!seen.insert(path).second) {
      throw Error(ExitCode::usage,
                  fmt::format("--to: expected files of different names, found two that make {}; predict "
                              "them one after the other, into folders of their own",
                              path));
    }
    if (fs::exists(path)) {
      throw Error(ExitCode::cannot_create, fmt::format("{}: is there already; choose another folder", path));
    }
    paths.push_back(path);
  }
  return paths;
}

}  // namespace

void require_pictures(const train::LoadedModel& model) {
  if (model.outputs().size() > 1) {
    throw Error(ExitCode::usage,
                fmt::format("--to: expected a model with one output, an image, found one with {}; leave "
                            "out --to",
                            model.outputs().size()));
  }
  const Shape& shape = model.prediction_shape();
  const auto meaning = ensemble::meaning_of(*model.outputs().front().loss);
  if (predicts_mask(model)) return;
  if (shape.size() != 3 || (shape[2] != 1 && shape[2] != 3) || meaning == ensemble::Meaning::classes) {
    throw Error(ExitCode::usage,
                fmt::format("--to: expected a model that predicts images, [height, width, 1 or 3], found "
                            "one that predicts {} for each sample; leave out --to",
                            to_string(shape)));
  }
  if (meaning == ensemble::Meaning::values && model.job().data.normalize) {
    throw Error(ExitCode::usage,
                "--to: expected pixels from 0 to 1, which a job with `data: {normalize: never}` predicts, "
                "found a model that was trained on normalized images");
  }
}

void write_pictures(const train::LoadedModel& model, const std::string& folder,
                    const std::vector<std::vector<std::string>>& files,
                    const std::vector<SamplePrediction>& predictions) {
  const auto paths = paths_in(folder, files);
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) {
    throw Error(code_of_errno(failed, ExitCode::cannot_create), fmt::format("{}: {}", folder, failed.message()));
  }
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const Shape& shape = model.prediction_shape();
    const std::vector<double>& values = predictions[i].values;
    checkpoint::write_whole(checkpoint::real_files(), paths[i],
                            predicts_mask(model) ? mask_of(values, shape) : data::png_of(picture_of(values, shape)));
    fmt::print("wrote {}\n", paths[i]);
  }
}

}  // namespace lockstep::cli
