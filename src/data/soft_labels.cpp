#include "data/soft_labels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "core/digest.hpp"
#include "core/files.hpp"
#include "core/untrusted.hpp"
#include "data/sample_identities.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

namespace {

std::size_t label_of(const DataSetInfo& info) {
  const auto found = std::find_if(info.features.begin(), info.features.end(),
                                  [](const Feature& feature) { return feature.kind == Feature::Kind::label; });
  if (found == info.features.end() || info.class_names.empty()) {
    throw Error(ExitCode::configuration,
                fmt::format("job.data: soft_labels and mix expect a set whose samples have a class each, found {}",
                            info.format));
  }
  return found - info.features.begin();
}

/// Rows of probabilities [samples, classes]; empty: every sample's label is taken as it is.
class SoftLabels final : public DataSet, public KnowsIdentities {
 public:
  SoftLabels(std::shared_ptr<const DataSet> whole, std::vector<float> rows, double weight, const std::string& digest)
      : whole_(std::move(whole)),
        info_(whole_->info()),
        label_(label_of(info_)),
        weight_(weight),
        rows_(std::move(rows)) {
    classes_ = info_.class_names.size();
    info_.features[label_].kind = Feature::Kind::tensor;
    info_.features[label_].spec = {DType::f32, {static_cast<std::int64_t>(classes_)}};
    info_.digest = sha256(fmt::format("{} soft {}", info_.digest, digest));
  }

  const DataSetInfo& info() const override { return info_; }
  std::int64_t size() const override { return whole_->size(); }
  void read(std::int64_t id, Sample& out) const override { read_variant(id, 0, out); }
  void read_variant(std::int64_t id, std::uint64_t variant, Sample& out) const override {
    whole_->read_variant(id, variant, out);
    Tensor& label = out.at(label_).tensor;
    const std::int32_t number = label.as<std::int32_t>()[0];
    if (number < 0 || static_cast<std::size_t>(number) >= classes_) {
      throw BadSample(fmt::format("{}: expected a label below {}, found {}", whole_->name(id), classes_, number));
    }
    label = Tensor(info_.features[label_].spec);
    const auto values = label.as<float>();
    for (std::size_t c = 0; c < classes_; ++c) {
      const double hard = c == static_cast<std::size_t>(number) ? 1 : 0;
      const double soft = rows_.empty() ? hard : rows_[id * classes_ + c];
      values[c] = weight_ * soft + (1 - weight_) * hard;
    }
  }
  std::string name(std::int64_t id) const override { return whole_->name(id); }
  std::int64_t label(std::int64_t id) const override { return whole_->label(id); }
  void add_identities(std::int64_t id, std::vector<std::uint64_t>& out) const override {
    data::add_identities(*whole_, id, out);
  }
  std::uint64_t bytes_read() const override { return whole_->bytes_read(); }

 private:
  std::shared_ptr<const DataSet> whole_;
  DataSetInfo info_;
  std::size_t label_, classes_ = 0;
  double weight_;
  std::vector<float> rows_;
};

[[noreturn]] void bad(const std::string& path, const std::string& what) {
  throw Error(ExitCode::data, fmt::format("{}: {}; make it with `lockstep ensemble distill`", path, what));
}

struct TeacherFile {
  Shape shape;
  std::string digest;
  std::vector<float> values;
};

/// A safetensors file with the one tensor; checkpoints are read elsewhere, by a room above this one.
TeacherFile parse_teacher(const std::string& bytes, const std::string& path) {
  std::uint64_t length = 0;
  if (bytes.size() >= sizeof length) std::memcpy(&length, bytes.data(), sizeof length);
  const std::string_view rest = std::string_view(bytes).substr(std::min(bytes.size(), sizeof length));
  if (length == 0 || length > rest.size() || nests_too_deep(rest.substr(0, length))) {
    bad(path, "expected a safetensors file, found none");
  }
  TeacherFile file;
  try {
    const auto header = nlohmann::json::parse(rest.substr(0, length));
    file.digest = header.at("__metadata__").at(kSamplesDigest).get<std::string>();
    const auto& entry = header.at(kProbabilitiesTensor);
    file.shape = shape_of(entry.at("shape"));
    const auto begin = integer_of<std::uint64_t>(entry.at("data_offsets").at(0));
    const auto data = rest.substr(length);
    const auto size = checked_bytes(file.shape, sizeof(float));
    if (entry.at("dtype") != "F32" || file.shape.size() != 2 || !size || begin > data.size() ||
        *size > data.size() - begin) {
      bad(path, fmt::format("expected probabilities [samples, classes] of F32, found {} of {} in {} bytes",
                            to_string(file.shape), entry.at("dtype").dump(), data.size()));
    }
    file.values.resize(*size / sizeof(float));
    std::memcpy(file.values.data(), data.data() + begin, *size);
  } catch (const nlohmann::json::exception&) {
    bad(path, fmt::format("expected a safetensors file with the tensor '{}' and '{}' among its metadata, found none",
                          kProbabilitiesTensor, kSamplesDigest));
  }
  return file;
}

void soften(std::span<float> row, double temperature, const std::string& path, std::size_t sample) {
  std::vector<double> powers;
  double sum = 0;
  for (const float p : row) {
    if (!(p >= 0 && p <= 1))
      bad(path, fmt::format("sample {}: expected probabilities from 0 to 1, found {}", sample, p));
    sum += powers.emplace_back(std::pow(static_cast<double>(p), 1 / temperature));
  }
  if (!(sum > 0)) bad(path, fmt::format("sample {}: expected probabilities that add up to 1, found only 0", sample));
  for (std::size_t c = 0; c < row.size(); ++c) row[c] = powers[c] / sum;
}

}  // namespace

std::shared_ptr<const DataSet> with_soft_labels(std::shared_ptr<const DataSet> whole, const SoftLabelOptions& options) {
  (void)label_of(whole->info());
  const auto bytes = read_whole_file(options.from);
  if (!bytes) bad(options.from, "cannot open it");
  TeacherFile file = parse_teacher(*bytes, options.from);
  const Shape wanted = {whole->size(), static_cast<std::int64_t>(whole->info().class_names.size())};
  if (file.shape != wanted || file.digest != whole->info().digest) {
    bad(options.from, fmt::format("expected probabilities {} of this job's training set, found {} of {}",
                                  to_string(wanted), to_string(file.shape),
                                  file.digest == whole->info().digest ? "it" : "another set, or another split of it"));
  }
  const std::size_t classes = wanted[1];
  for (std::size_t i = 0; i * classes < file.values.size(); ++i) {
    soften(std::span(file.values).subspan(i * classes, classes), options.temperature, options.from, i);
  }
  const std::string digest = fmt::format("{} {} {}", sha256(*bytes), options.weight, options.temperature);
  return std::make_shared<SoftLabels>(std::move(whole), std::move(file.values), options.weight, digest);
}

std::shared_ptr<const DataSet> with_one_hot_labels(std::shared_ptr<const DataSet> whole) {
  return std::make_shared<SoftLabels>(std::move(whole), std::vector<float>(), 1.0, "one-hot");
}

DataSetInfo with_hard_labels(DataSetInfo info) {
  const TensorSpec soft{DType::f32, {std::ssize(info.class_names)}};
  for (Feature& feature : info.features) {
    if (feature.kind == Feature::Kind::label) break;
    if (feature.kind != Feature::Kind::tensor || feature.spec != soft || !feature.classes.empty()) continue;
    feature.kind = Feature::Kind::label;
    feature.spec = {DType::i32, {}};
    break;
  }
  return info;
}

}  // namespace lockstep::data
