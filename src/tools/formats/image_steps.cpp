#include "tools/formats/image_steps.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "lockstep/error.hpp"
#include "tools/formats/json_object.hpp"

namespace lockstep::formats {

namespace {

using Json = nlohmann::ordered_json;

/// preprocessor_config.json; what it leaves out is as in ViTImageProcessor.
class Processor {
 public:
  Processor(Json json, std::string path, std::int64_t side, std::int64_t channels)
      : json_(std::move(json)), path_(std::move(path)), side_(side), channels_(channels) {}

  std::string prepare(std::vector<std::string>& warnings) const {
    refuse_other_steps();
    std::vector<std::string> steps;
    Size size{0, 0};  // that of the images, which is not known
    if (is("do_resize", true)) {
      const Json wanted = get("size");
      if (wanted.is_object() && wanted.contains("shortest_edge")) {
        steps.push_back(fmt::format("{{resize: {}}}", integer("size", wanted.at("shortest_edge"))));
      } else {
        size = wanted.is_null() ? Size{side_, side_} : size_of("size", wanted);
        steps.push_back(fmt::format("{{resize: [{}, {}]}}", size.height, size.width));
      }
    }
    if (is("do_center_crop", false)) {
      size = size_of("crop_size", get("crop_size"));
      steps.push_back(fmt::format("{{center_crop: [{}, {}]}}", size.height, size.width));
    }
    if (steps.empty()) return "";  // the images have that size
    if (size.height != side_ || size.width != side_) {
      const char* const key = is("do_center_crop", false) ? "crop_size" : "size";
      refuse(key, fmt::format("images of {0} x {0}, the model's image_size", side_), get(key));
    }
    if (const std::string filter = other_filter(); !filter.empty()) {
      warnings.push_back(
          fmt::format("{}: resample: images are resized with the {} filter there, and with the bilinear one here, so "
                      "predictions may differ a little; resize the images beforehand if that matters",
                      path_, filter));
    }
    return fmt::format("    prepare: [{}]\n", fmt::join(steps, ", "));
  }

  /// A pixel p from 0 to 255 becomes (p * factor - mean) / std there, and (p / 255 - mean) / std here.
  std::string normalize() const {
    const double scale = is("do_rescale", true) ? 255 * number("rescale_factor", 1.0 / 255) : 255;
    const std::size_t channels = channels_;
    std::vector<double> mean(channels, 0), stddev(channels, 1);
    const bool rescaled = std::abs(scale - 1) > 1e-6;
    if (is("do_normalize", true)) {
      mean = numbers("image_mean");
      stddev = numbers("image_std");
    } else if (!rescaled) {
      return "    normalize: never\n";
    }
    for (std::size_t i = 0; rescaled && i < channels; ++i) {
      mean[i] /= scale;
      stddev[i] /= scale;
    }
    return fmt::format("    normalize: {{mean: [{}], std: [{}]}}\n", fmt::join(mean, ", "), fmt::join(stddev, ", "));
  }

 private:
  struct Size {
    std::int64_t height, width;
  };

  /// Steps that neither `prepare` nor `normalize` has.
  void refuse_other_steps() const {
    constexpr std::array<std::string_view, 5> kKnown{"do_resize", "do_center_crop", "do_rescale", "do_normalize",
                                                     "do_convert_rgb"};
    for (const auto& [key, value] : json_.items()) {
      const bool known = std::find(kKnown.begin(), kKnown.end(), key) != kKnown.end();
      if (!known && (key.starts_with("do_") || key.ends_with("offset")) && is(key, false)) {
        refuse(key, "false, for a job has no such step", value);
      }
    }
    if (!get("crop_pct").is_null()) refuse("crop_pct", "none, for a job has no such step", get("crop_pct"));
  }
  /// The filter that images are resized with, if it is not lockstep's.
  std::string other_filter() const {
    constexpr std::int64_t kBilinear = 2;
    constexpr std::array<const char*, 6> kNames{"nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"};
    const Json filter = get("resample");
    if (!is("do_resize", true) || filter.is_null()) return "";
    const std::int64_t number = filter.is_number_integer() ? filter.get<std::int64_t>() : -1;
    if (number < 0 || number >= std::ssize(kNames)) refuse("resample", "a filter, 0 to 5", filter);
    return number == kBilinear ? "" : kNames[number];
  }
  Json get(const std::string& key) const { return json_.value(key, Json()); }
  bool is(const std::string& key, bool usual) const {
    const Json value = get(key);
    if (value.is_null()) return usual;
    if (!value.is_boolean()) refuse(key, "true or false", value);
    return value.get<bool>();
  }
  double number(const std::string& key, double usual) const {
    const Json value = get(key);
    if (value.is_null()) return usual;
    if (!value.is_number() || value.get<double>() <= 0) refuse(key, "a number above 0", value);
    return value.get<double>();
  }
  std::int64_t integer(const std::string& key, const Json& value) const {
    if (!value.is_number_integer() || value.get<std::int64_t>() < 1) refuse(key, "a whole number above 0", value);
    return value.get<std::int64_t>();
  }
  /// A number, or {height, width}.
  Size size_of(const std::string& key, const Json& value) const {
    if (!value.is_object()) return {integer(key, value), integer(key, value)};
    if (!value.contains("height") || !value.contains("width")) refuse(key, "height and width", value);
    return {integer(key, value.at("height")), integer(key, value.at("width"))};
  }
  /// By channel.
  std::vector<double> numbers(const std::string& key) const {
    const Json list = get(key);
    if (list.is_null()) return std::vector<double>(channels_, 0.5);
    std::vector<double> values;
    for (const Json& value : list.is_array() ? list : Json::array()) {
      if (value.is_number()) values.push_back(value.get<double>());
    }
    if (std::ssize(values) != channels_ || values.size() != list.size()) {
      refuse(key, fmt::format("{} numbers, one for each channel", channels_), list);
    }
    return values;
  }
  [[noreturn]] void refuse(const std::string& key, const std::string& expected, const Json& found) const {
    throw Error(ExitCode::data,
                fmt::format("{}: {}: expected {}, found {}", path_, key, expected,
                            found.is_null() ? "none" : found.dump(-1, ' ', true, Json::error_handler_t::replace)));
  }

  Json json_;
  std::string path_;
  std::int64_t side_, channels_;
};

}  // namespace

std::string image_steps(const std::string& folder, std::int64_t size, std::int64_t channels,
                        std::vector<std::string>& warnings) {
  const auto path = std::filesystem::path(folder) / "preprocessor_config.json";
  auto json = read_object(path);
  if (!json) return fmt::format("    prepare: [{{resize: [{0}, {0}]}}]\n", size);
  const Processor processor(std::move(*json), path.string(), size, channels);
  return processor.prepare(warnings) + processor.normalize();
}

}  // namespace lockstep::formats
