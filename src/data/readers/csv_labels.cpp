#include "data/readers/csv_labels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

enum class Kind { word, class_number, other_number, missing };

bool is_digits(const std::string& text) {
  return text.find_first_not_of("0123456789") == std::string::npos;
}

Kind kind_of(const std::string& label) {
  if (label == "nan" || label == "NaN") return Kind::missing;
  if (is_digits(label)) {
    if (label.size() > 1 && label[0] == '0') return Kind::word;
    return label.size() < 6 ? Kind::class_number : Kind::other_number;
  }
  const bool plus = label[0] == '+';  // which from_chars does not take
  double value = 0;
  const auto [end, error] = std::from_chars(label.data() + (plus ? 1 : 0), label.data() + label.size(), value);
  return end == label.data() + label.size() && error != std::errc::invalid_argument ? Kind::other_number : Kind::word;
}

struct Labels {
  std::map<std::string, Kind> distinct;
  int most = -1;                         ///< the largest class number
  const ImageSample* refused = nullptr;  ///< the first sample whose label is a number, but no class's
  [[nodiscard]] bool have(Kind kind) const {
    return std::any_of(distinct.begin(), distinct.end(), [kind](const auto& entry) { return entry.second == kind; });
  }
};

Labels look_at_labels(std::vector<ImageSample>& samples) {
  Labels labels;
  for (auto& sample : samples) {
    const std::string& label = sample.class_name;
    if (label.empty()) continue;
    const Kind kind = labels.distinct.try_emplace(label, kind_of(label)).first->second;
    if (kind == Kind::class_number) labels.most = std::max(labels.most, std::stoi(label));
    if (kind == Kind::other_number && labels.refused == nullptr) labels.refused = &sample;
    if (kind == Kind::missing && sample.fault.empty()) sample.fault = fmt::format("the label is {}, no class", label);
  }
  std::erase_if(labels.distinct, [](const auto& entry) { return entry.second == Kind::missing; });
  return labels;
}

/// "98 of 100 classes have no sample (1, 2, 3 and 95 more)"
std::string unused_text(const std::map<std::string, Kind>& used, int classes) {
  constexpr std::size_t kNamed = 3;
  std::string named;
  std::size_t unused = 0;
  for (int i = 0; i < classes; ++i) {
    if (used.contains(std::to_string(i))) continue;
    if (++unused <= kNamed) named += (named.empty() ? "" : ", ") + std::to_string(i);
  }
  if (unused == 0) return "";
  if (unused > kNamed) named += fmt::format(" and {} more", unused - kNamed);
  return fmt::format(
      "{} of {} classes {} no sample ({}): labels that are all numbers are the classes' numbers, from 0 to "
      "the largest",
      unused, classes, unused == 1 ? "has" : "have", named);
}

}  // namespace

void name_classes(ImageCandidates& candidates) {
  const Labels labels = look_at_labels(candidates.samples);
  candidates.class_names.clear();
  if (labels.have(Kind::word)) {
    for (const auto& [label, kind] : labels.distinct) candidates.class_names.push_back(label);
    return;
  }
  if (labels.refused != nullptr) {
    throw Error(ExitCode::data,
                fmt::format("{}: label '{}': expected the number of a class, 0 to {}, as the other labels are numbers; "
                            "write classes as whole numbers from 0, or all of them as words",
                            labels.refused->name, labels.refused->class_name, kMaxNumberedClasses - 1));
  }
  for (int i = 0; i <= labels.most; ++i) candidates.class_names.push_back(std::to_string(i));
  const std::string unused = unused_text(labels.distinct, labels.most + 1);
  if (!unused.empty()) candidates.warnings.push_back(unused);
}

}  // namespace lockstep::data
