#include "points_file.hpp"

#include <lockstep/error.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>

using lockstep::DType;
using lockstep::Feature;

PointsFile::PointsFile(const std::string& path, std::size_t first, std::size_t stride) {
  std::ifstream file(path);
  if (!file) throw lockstep::Error(lockstep::ExitCode::data, path + ": cannot be opened");
  std::string text;
  for (std::size_t line = 0; std::getline(file, text); ++line) {
    Point point{};
    std::istringstream words(text);
    if (!(words >> point.position[0] >> point.position[1] >> point.label) || point.label < 0 || point.label > 1) {
      throw lockstep::Error(
          lockstep::ExitCode::data,
          path + ":" + std::to_string(line + 1) + ": expected 'x y class' with class 0 or 1, found '" + text + "'");
    }
    if (line % stride == first) points_.push_back(point);
  }
  info_.format = "points";
  info_.source = path;
  info_.features = {{.name = "point", .kind = Feature::Kind::tensor, .spec = {DType::f32, {2}}},
                    {.name = "label", .kind = Feature::Kind::label, .spec = {DType::i32, {}}}};
  info_.class_names = {"left", "right"};
  info_.class_counts.assign(2, 0);
  for (const Point& point : points_) ++info_.class_counts[static_cast<std::size_t>(point.label)];
  // Ranks compare this at the start, so that none trains on another file.
  info_.digest = path + ":" + std::to_string(first) + "/" + std::to_string(stride) + ":" + std::to_string(size());
}

void PointsFile::read(std::int64_t id, lockstep::Sample& out) const {
  if (out.size() != info_.features.size()) {
    out.clear();
    for (const Feature& feature : info_.features) out.push_back({feature.name, lockstep::Tensor(feature.spec)});
  }
  const Point& point = points_.at(static_cast<std::size_t>(id));
  std::copy(point.position.begin(), point.position.end(), out[0].tensor.as<float>().begin());
  out[1].tensor.as<std::int32_t>()[0] = point.label;
}

std::int64_t PointsFile::label(std::int64_t id) const {
  return points_.at(static_cast<std::size_t>(id)).label;
}
