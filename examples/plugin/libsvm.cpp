// A reader: files in the format of LIBSVM, one sample a line, "target index:value index:value ...", with indices from
// 1; what a line leaves out is 0. Features are a table's columns, so that lockstep normalizes them.
#include <algorithm>
#include <charconv>
#include <fstream>
#include <string_view>

#include "parts.hpp"

namespace {

using namespace lockstep;

struct Line {
  float target = 0;
  std::vector<std::pair<std::int64_t, float>> values;  ///< by index, from 0
};

template <class Number>
bool parse(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

/// False if it is not in the format.
bool parse(std::string_view text, Line& line) {
  bool first = true;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (word.empty()) continue;
    if (first) {
      if (!parse(word, line.target)) return false;
      first = false;
      continue;
    }
    const auto colon = word.find(':');
    std::int64_t index = 0;
    float value = 0;
    if (colon == std::string_view::npos || !parse(word.substr(0, colon), index) || index < 1) return false;
    if (!parse(word.substr(colon + 1), value)) return false;
    line.values.emplace_back(index - 1, value);
  }
  return !first;
}

class Libsvm final : public DataSet {
 public:
  explicit Libsvm(const ReaderRequest& request) : features_(request.attributes.integer("features")) {
    for (const auto& path : request.paths) read_file(path);
    info_.format = "LIBSVM";
    info_.source = request.paths.front();
    info_.features = {{"features", Feature::Kind::columns, {DType::f32, {features_}}},
                      {"label", Feature::Kind::tensor, {DType::f32, {}}}};
    for (std::int64_t i = 1; i <= features_; ++i)
      info_.columns.push_back({.name = std::to_string(i), .categories = {}});
    // Ranks compare this at the start, so that none trains on other files.
    std::uint64_t hash = hash_name("libsvm");
    for (const auto& part : digests_) hash = hash * 0x100000001b3U ^ part;
    info_.digest = std::to_string(hash);
  }

  [[nodiscard]] const DataSetInfo& info() const override { return info_; }
  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(lines_.size()); }
  [[nodiscard]] std::string name(std::int64_t id) const override { return names_.at(static_cast<std::size_t>(id)); }
  /// Called concurrently by several threads.
  void read(std::int64_t id, Sample& out) const override {
    const Line& line = lines_.at(static_cast<std::size_t>(id));
    out.clear();
    for (const Feature& feature : info_.features) out.push_back({feature.name, Tensor(feature.spec)});
    const auto values = out[0].tensor.as<float>();
    std::fill(values.begin(), values.end(), 0.0F);
    for (const auto& [index, value] : line.values) values[static_cast<std::size_t>(index)] = value;
    out[1].tensor.as<float>()[0] = line.target;
  }

 private:
  void read_file(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw Error(ExitCode::data, path + ": cannot open");
    std::string text;
    for (std::size_t number = 1; std::getline(file, text); ++number) {
      const std::string name = path + ":" + std::to_string(number);
      Line& line = lines_.emplace_back();
      if (!parse(text, line)) {
        throw Error(ExitCode::data, name + ": expected 'target index:value ...', found '" + text + "'");
      }
      for (const auto& [index, value] : line.values) {
        if (index < features_) continue;
        throw Error(ExitCode::data, name + ": expected indices up to " + std::to_string(features_) + ", found " +
                                        std::to_string(index + 1) + "; set features");
      }
      names_.push_back(name);
      digests_.push_back(hash_name(text));
    }
  }

  std::int64_t features_;
  std::vector<Line> lines_;
  std::vector<std::string> names_;
  std::vector<std::uint64_t> digests_;
  DataSetInfo info_;
};

}  // namespace

ReaderDef libsvm() {
  ReaderDef reader;
  reader.name = "libsvm";
  reader.doc = "LIBSVM's format: a target and some of the features a line";
  reader.attributes = {{.name = "features", .kind = AttributeKind::integer, .doc = "how many there are", .minimum = 1}};
  reader.open = [](const ReaderRequest& request) { return std::make_unique<Libsvm>(request); };
  return reader;
}
