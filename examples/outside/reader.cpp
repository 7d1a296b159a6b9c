// A custom reader: a text file with one point per line, "x y class"; here two spirals.
//   reader points.txt
#include <lockstep/data_set.hpp>
#include <lockstep/error.hpp>

#include <array>
#include <fstream>
#include <sstream>

#include "example.hpp"

namespace {

using namespace lockstep;

class PointsFile final : public DataSet {
 public:
  /// Lines `first`, `first + stride`, ... of the file.
  PointsFile(const std::string& path, std::size_t first, std::size_t stride) {
    std::ifstream file(path);
    if (!file) throw Error(ExitCode::data, path + ": cannot open");
    std::string text;
    for (std::size_t line = 0; std::getline(file, text); ++line) {
      Point point{};
      std::istringstream words(text);
      if (!(words >> point.position[0] >> point.position[1] >> point.label) || point.label < 0 || point.label > 1) {
        throw Error(ExitCode::data, path + ":" + std::to_string(line + 1) +
                                        ": expected 'x y class' with class 0 or 1, found '" + text + "'");
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
    // Ranks compare this at the start, so that none trains on a different file.
    info_.digest = path + ":" + std::to_string(first) + "/" + std::to_string(stride) + ":" + std::to_string(size());
  }

  [[nodiscard]] const DataSetInfo& info() const override { return info_; }
  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(points_.size()); }
  /// Called concurrently by several threads.
  void read(std::int64_t id, Sample& out) const override {
    out.clear();
    for (const Feature& feature : info_.features) out.push_back({feature.name, Tensor(feature.spec)});
    const Point& point = points_.at(static_cast<std::size_t>(id));
    std::copy(point.position.begin(), point.position.end(), out[0].tensor.as<float>().begin());
    out[1].tensor.as<std::int32_t>()[0] = point.label;
  }

 private:
  struct Point {
    std::array<float, 2> position;
    std::int32_t label;
  };
  std::vector<Point> points_;
  DataSetInfo info_;
};

}  // namespace

int main(int argc, char** argv) {
  return run_example([&] {
    const std::string path = argc > 1 ? argv[1] : "points.txt";
    const Registries registries = Registries::built_in();
    const DataSets data{.train = std::make_shared<PointsFile>(path, 0, 2),
                        .validation = std::make_shared<PointsFile>(path, 1, 2)};
    const JobFile job = digits(registries, {"data.train=program", "data.validation=program",
                                            "model.layers=[{linear: 32}, relu, {linear: 32}, relu, {linear: 2}]",
                                            "batch_size=48", "epochs=100", "evaluate.every=20 epochs"});
    return same_bits([&](Communicator& communicator) { return train_job(job, communicator, registries, {}, data); });
  });
}
