// A reader of one's own: a text file with one point a line, "x y class".
#pragma once

#include <lockstep/data_set.hpp>

#include <array>
#include <string>
#include <vector>

class PointsFile final : public lockstep::DataSet {
 public:
  /// Lines `first`, `first + stride`, ... of the file. Throws Error(data) that names the first bad line.
  PointsFile(const std::string& path, std::size_t first, std::size_t stride);

  [[nodiscard]] const lockstep::DataSetInfo& info() const override { return info_; }
  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(points_.size()); }
  void read(std::int64_t id, lockstep::Sample& out) const override;
  [[nodiscard]] std::int64_t label(std::int64_t id) const override;

 private:
  struct Point {
    std::array<float, 2> position;
    std::int32_t label;
  };
  std::vector<Point> points_;
  lockstep::DataSetInfo info_;
};
