// Shared by the checkpoint tests: a temporary folder, and a model whose values all encode its step.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "run/checkpoint/checkpoint.hpp"
#include "run/checkpoint/layout.hpp"
#include "run/checkpoint/writer.hpp"

namespace lockstep::checkpoint {

class Folder {
 public:
  Folder() {
    path_ = (std::filesystem::temp_directory_path() / "lockstep-checkpoint-XXXXXX").string();
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Tensors of odd sizes, one larger than a file, one empty.
class SmallModel {
 public:
  static constexpr std::int64_t kPart = 32 << 10;  ///< bytes: "weight" and its momentum are cut

  SmallModel() {
    add("weight", {3, 4100}, false);
    add("bias", {7}, false);
    add("nothing", {0, 5}, false);
    add("mean", {2, 2}, false);
    add("weight:momentum", {3, 4100}, true);
    add("bias:momentum", {7}, true);
  }
  void set(float value) {
    for (auto& values : values_) std::fill(values.begin(), values.end(), value);
  }
  /// The value of all its elements; NaN if they differ.
  [[nodiscard]] float value() const {
    const float first = values_.front().front();
    for (const auto& values : values_) {
      for (const float value : values) {
        if (value != first) return std::numeric_limits<float>::quiet_NaN();
      }
    }
    return first;
  }
  [[nodiscard]] std::vector<TensorSource> sources() const {
    std::vector<TensorSource> list;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      list.push_back({names_[i], shapes_[i], values_[i], names_[i].find(':') != std::string::npos});
    }
    return list;
  }
  [[nodiscard]] Targets targets() {
    Targets map;
    for (std::size_t i = 0; i < names_.size(); ++i) map[names_[i]] = {shapes_[i], values_[i]};
    return map;
  }

 private:
  void add(const std::string& name, const Shape& shape, bool /*optimizer*/) {
    names_.push_back(name);
    shapes_.push_back(shape);
    values_.emplace_back(static_cast<std::size_t>(elements(shape)));
  }
  std::vector<std::string> names_;
  std::vector<Shape> shapes_;
  std::vector<std::vector<float>> values_;
};

inline Progress progress_of(std::int64_t step) {
  Progress progress;
  progress.step = step;
  progress.samples = 32 * step;
  progress.seed = 9;
  progress.micro_batches = 4;
  progress.job = "{}";
  progress.metrics = {{"loss", 0.5}};
  progress.metadata = {{"classes", R"(["cat","dog"])"}};
  return progress;
}

inline std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void spit(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace lockstep::checkpoint
