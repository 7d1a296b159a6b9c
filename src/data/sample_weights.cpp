#include "data/sample_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>
#include <utility>

#include "core/digest.hpp"
#include "core/nearest.hpp"
#include "data/readers/file.hpp"
#include "data/readers/prepare.hpp"
#include "data/readers/table_columns.hpp"
#include "data/sample_identities.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

namespace {

std::size_t place_of_weight(const DataSetInfo& info) {
  const auto found = std::find_if(info.features.begin(), info.features.end(),
                                  [](const Feature& feature) { return feature.kind == Feature::Kind::weight; });
  return found - info.features.begin();
}

/// (id, the sample's own weight or 1) -> its weight
using WeightOf = std::function<float(std::int64_t, float)>;

class Weighted final : public DataSet, public KnowsIdentities {
 public:
  Weighted(std::shared_ptr<const DataSet> whole, WeightOf weight_of, const std::string& digest)
      : whole_(std::move(whole)),
        weight_of_(std::move(weight_of)),
        info_(whole_->info()),
        place_(place_of_weight(info_)),
        has_own_(place_ < info_.features.size()) {
    if (!has_own_) info_.features.push_back(weight_feature());
    if (!digest.empty()) info_.digest = sha256(fmt::format("{} weights {}", info_.digest, digest));
  }

  const DataSetInfo& info() const override { return info_; }
  std::int64_t size() const override { return whole_->size(); }
  void read(std::int64_t id, Sample& out) const override { read_variant(id, 0, out); }
  void read_variant(std::int64_t id, std::uint64_t variant, Sample& out) const override {
    whole_->read_variant(id, variant, out);
    weigh(id, out);
  }
  void read_without_images(std::int64_t id, Sample& out) const override {
    whole_->read_without_images(id, out);
    weigh(id, out);
  }
  std::string name(std::int64_t id) const override { return whole_->name(id); }
  std::int64_t label(std::int64_t id) const override { return whole_->label(id); }
  void add_identities(std::int64_t id, std::vector<std::uint64_t>& out) const override {
    data::add_identities(*whole_, id, out);
  }
  std::uint64_t bytes_read() const override { return whole_->bytes_read(); }

 private:
  void weigh(std::int64_t id, Sample& out) const {
    if (!has_own_) out.resize(info_.features.size());
    NamedTensor& weight = out[place_];
    if (!has_own_) {
      if (weight.name != kSampleWeight) weight.name = kSampleWeight;
      prepare(weight.tensor, info_.features[place_].spec);
    }
    float& value = weight.tensor.as<float>()[0];
    value = weight_of_(id, has_own_ ? value : 1.0F);
  }

  std::shared_ptr<const DataSet> whole_;
  WeightOf weight_of_;
  DataSetInfo info_;
  std::size_t place_;
  bool has_own_;
};

[[noreturn]] void fail(const ClassWeightOptions& options, const std::string& what) {
  const std::string place = options.place.text();
  throw Error(ExitCode::configuration, (place.empty() ? "job.data.class_weights" : place) + ": " + what);
}

std::vector<double> balanced(const DataSetInfo& info) {
  double samples = 0, classes = 0;
  for (const std::int64_t count : info.class_counts) {
    samples += count;
    classes += count > 0 ? 1 : 0;
  }
  std::vector<double> weights;
  for (const std::int64_t count : info.class_counts) {
    weights.push_back(count > 0 ? samples / (classes * count) : 0);
  }
  return weights;
}

std::vector<double> by_name(const DataSetInfo& info, const ClassWeightOptions& options) {
  std::vector<double> weights(info.class_names.size(), 1);
  for (const auto& [name, weight] : options.by_name) {
    const auto found = std::find(info.class_names.begin(), info.class_names.end(), name);
    if (found == info.class_names.end()) {
      fail(options, fmt::format("expected names of classes, found '{}', which is none of the training set's {}{}", name,
                                info.class_names.size(), did_you_mean(name, info.class_names)));
    }
    weights[found - info.class_names.begin()] = weight;
  }
  return weights;
}

}  // namespace

void require_weight(std::span<const float> weights, const std::string& place) {
  if (std::any_of(weights.begin(), weights.end(), [](float weight) { return weight > 0; })) return;
  throw Error(ExitCode::data, fmt::format("{}: expected a weight above 0 for one sample at least, found none", place));
}

bool has_weights(const DataSetInfo& info) {
  return place_of_weight(info) < info.features.size();
}

std::vector<double> class_weights(const DataSetInfo& info, const ClassWeightOptions& options) {
  if (info.class_names.empty()) {
    const auto is_number = [](const Feature& f) { return f.name == "label" && f.kind == Feature::Kind::tensor; };
    const bool of_numbers = !info.columns.empty() && std::any_of(info.features.begin(), info.features.end(), is_number);
    fail(options, fmt::format("expected samples of one class each, found {}; {}leave class_weights out",
                              of_numbers ? "a table with a target of numbers" : info.format,
                              of_numbers ? "name the target under `categorical`, or " : ""));
  }
  if (!options.by_number.empty() && options.by_number.size() != info.class_names.size()) {
    fail(options, fmt::format("expected {} weights, one for each class, found {}", info.class_names.size(),
                              options.by_number.size()));
  }
  std::vector<double> weights = options.balanced            ? balanced(info)
                                : options.by_number.empty() ? by_name(info, options)
                                                            : options.by_number;
  bool counts = false;
  for (std::size_t c = 0; c < weights.size(); ++c) counts = counts || (weights[c] > 0 && info.class_counts.at(c) > 0);
  if (!counts) fail(options, "expected a weight above 0 for a class that has training samples, found none");
  return weights;
}

std::shared_ptr<const DataSet> with_class_weights(std::shared_ptr<const DataSet> whole,
                                                  const std::vector<double>& by_class) {
  const DataSet* const set = whole.get();
  const auto weight_of = [set, by_class](std::int64_t id, float own) {
    const std::int64_t label = set->label(id);
    if (label < 0 || label >= std::ssize(by_class)) {
      throw BadSample(fmt::format("{}: expected a label below {}, found {}", set->name(id), by_class.size(), label));
    }
    return static_cast<float>(own * by_class[label]);
  };
  return std::make_shared<Weighted>(std::move(whole), weight_of, "");  // the job's digest has them
}

std::shared_ptr<const DataSet> with_equal_weights(std::shared_ptr<const DataSet> whole) {
  return std::make_shared<Weighted>(
      std::move(whole), [](std::int64_t /*id*/, float /*own*/) { return 1.0F; }, "");
}

std::optional<float> parse_weight(const std::string& text) {
  const auto number = number_in(text);
  const float rounded = number.value_or(-1);
  return rounded >= 0 && std::isfinite(rounded) ? std::optional(rounded) : std::nullopt;
}

std::unique_ptr<DataSet> with_weights_of(std::unique_ptr<DataSet> whole, const std::string& path) {
  const auto bytes = read_whole(File(path, make_byte_counter()));
  std::istringstream lines(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  std::vector<float> weights;
  std::string line;
  while (std::getline(lines, line)) {
    if (line.ends_with('\r')) line.pop_back();
    const auto weight = parse_weight(line);
    if (!weight) {
      throw Error(ExitCode::data, fmt::format("{}:{}: expected a weight, a number of at least 0, found '{}'", path,
                                              weights.size() + 1, line));
    }
    weights.push_back(*weight);
  }
  if (std::ssize(weights) != whole->size()) {
    throw Error(ExitCode::data, fmt::format("{}: expected {} weights, one a line for each sample of {}, found {}", path,
                                            whole->size(), whole->info().source, weights.size()));
  }
  require_weight(weights, path);
  const std::string digest = sha256(bytes);
  return std::make_unique<Weighted>(
      std::move(whole), [weights](std::int64_t id, float /*own*/) { return weights.at(id); }, digest);
}

}  // namespace lockstep::data
