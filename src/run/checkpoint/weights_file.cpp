#include "run/checkpoint/weights_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/nearest.hpp"
#include "core/words.hpp"
#include "lockstep/error.hpp"
#include "run/checkpoint/safetensors.hpp"

namespace lockstep::checkpoint {

namespace {

// What a file of weights lacks that a model needs, as one message: both lists, and which of them are likely the same.

struct WeightsFit {
  std::vector<NamedShape> missing;   ///< of the model
  std::vector<NamedShape> unused;    ///< of the file
  std::vector<std::string> refused;  ///< "tensor 'a': expected F32 [3], found F32 [2]"
  std::size_t wanted = 0;            ///< tensors of the model, with those that were found

  bool fits() const { return missing.empty() && refused.empty(); }
  /// Several lines, the first of which begins with the file's name.
  std::string message(const std::string& file) const;
};

constexpr std::size_t kShown = 8;

std::string shown(const NamedShape& tensor) {
  return fmt::format("{} {}", tensor.name, to_string(tensor.shape));
}

void add_list(std::string& text, const std::string& title, const std::vector<std::string>& items) {
  if (items.empty()) return;
  text += fmt::format("\n  {}: {}", title, few_of(items, kShown));
}

/// For each missing tensor the unused one of its shape with the nearest name; each is taken once.
std::vector<std::string> likely_pairs(const WeightsFit& fit) {
  std::vector<std::string> pairs;
  std::vector<NamedShape> left = fit.unused;
  for (const NamedShape& ours : std::span(fit.missing).first(std::min(fit.missing.size(), kShown))) {
    auto best = left.end();
    int least = std::numeric_limits<int>::max();
    for (auto other = left.begin(); other != left.end(); ++other) {
      if (other->shape != ours.shape) continue;
      const int distance = edit_distance(ours.name, other->name);
      if (distance < least) {
        least = distance;
        best = other;
      }
    }
    if (best == left.end()) continue;
    pairs.push_back(fmt::format("{}: {}", ours.name, best->name));
    left.erase(best);
  }
  return pairs;
}

std::vector<std::string> all_shown(const std::vector<NamedShape>& tensors) {
  std::vector<std::string> items;
  for (const auto& tensor : tensors) items.push_back(shown(tensor));
  return items;
}

std::string WeightsFit::message(const std::string& file) const {
  const std::size_t found = wanted - missing.size() - refused.size();
  std::string text = fmt::format("{}: expected {} tensors of the model, found {} that fit", file, wanted, found);
  for (std::size_t i = 0; i < std::min(refused.size(), kShown); ++i) text += "\n  " + refused[i];
  if (refused.size() > kShown) text += fmt::format("\n  and {} more", refused.size() - kShown);
  add_list(text, "only in the model", all_shown(missing));
  add_list(text, "only in the file", all_shown(unused));
  add_list(text, "likely the same, for initialize.map", likely_pairs(*this));
  return text + "\n  initialize.only takes some of the parameters";
}

/// Which program wrote the file, according to its metadata: for PyTorch models, "pt" is customary (the transformers
/// library writes it, too).
WeightNames writer_of(const SafetensorsFile& file) {
  const auto found = file.metadata().find("format");
  if (found == file.metadata().end()) return WeightNames::automatic;
  if (found->second == "lockstep") return WeightNames::lockstep;
  return found->second == "pt" ? WeightNames::torch : WeightNames::automatic;
}

constexpr const char* kMerge =
    "since queries, keys and values are one layer here; merge the adapter into its model with PEFT (merge_and_unload) "
    "and begin from that";

/// Turns weights [in, out] into [out, in].
std::vector<float> transpose(const std::vector<float>& in, std::int64_t rows, std::int64_t columns) {
  std::vector<float> out(in.size());
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    out[i] = in[i % columns * rows + i / columns];
  }
  return out;
}

/// The name that TensorFlow gave it, as in Google's checkpoints of BERT; "" for what is called the same.
std::string name_of_tensorflow(const std::string& name) {
  for (const auto& [now, then] : {std::pair("LayerNorm.weight", "gamma"), std::pair("LayerNorm.bias", "beta")}) {
    if (name.ends_with(now)) return name.substr(0, name.rfind('.') + 1) + then;
  }
  return "";
}

}  // namespace

WeightsFile::WeightsFile(SafetensorsFile file, const Graph& graph, Reading reading)
    : file_(std::move(file)), flattened_(flattened_tensors(graph)), reading_(std::move(reading)) {
  choose_library(graph);
  if (reading_.names == WeightNames::automatic) reading_.names = writer_of(file_);
}

/// A library's names that the job asks for, or that the file has where it lacks some of the model's own.
void WeightsFile::choose_library(const Graph& graph) {
  const bool asked = reading_.names == WeightNames::torchvision || reading_.names == WeightNames::huggingface;
  if (asked) {
    foreign_ = foreign_model(reading_.names, graph);
    if (foreign_ != nullptr) return;
    throw Error(
        ExitCode::configuration,
        fmt::format("initialize.names: expected a model that {} has, too (resnet, mobilenet; gpt, llama, bert with "
                    "types, vit with pool: token), found another one; set initialize.map",
                    name_of(reading_.names)));
  }
  if (reading_.names == WeightNames::lockstep) return;
  for (const WeightNames library : {WeightNames::torchvision, WeightNames::huggingface}) {
    const ForeignModel* const model = foreign_model(library, graph);
    if (model == nullptr) continue;
    const auto known = [&](ValueId id) { return has(name_in_file(model->find(graph.at(id).name)->names.front())); };
    if (std::none_of(graph.parameters.begin(), graph.parameters.end(), known)) continue;
    foreign_ = model;
    reading_.names = library;
    return;
  }
}

std::string WeightsFile::mapped(const std::string& tensor) const {
  for (const auto& [ours, theirs] : reading_.map) {
    if (ours == tensor) return theirs;
    if (!ours.ends_with('*') || !tensor.starts_with(std::string_view(ours).substr(0, ours.size() - 1))) continue;
    const bool whole = !theirs.ends_with('*');
    return whole ? theirs : theirs.substr(0, theirs.size() - 1) + tensor.substr(ours.size() - 1);
  }
  return tensor;
}

/// Models of transformers are saved with or without the name of what holds them: "transformer.wte.weight".
std::string WeightsFile::with_or_without_prefix(const std::string& name) const {
  const std::string before(name.starts_with(kPeftPrefix) ? kPeftPrefix : "");
  const std::string_view inner = std::string_view(name).substr(before.size());
  for (const std::string_view prefix : {"transformer.", "model.", "bert.", "vit."}) {
    if (has(name) || !inner.starts_with(prefix)) continue;
    if (std::string without = before + std::string(inner.substr(prefix.size())); has(without)) return without;
  }
  return name;
}

std::string WeightsFile::name_in_file(const std::string& name) const {
  std::string found = with_or_without_prefix(name);
  const std::string older = name_of_tensorflow(name);
  if (has(found) || older.empty()) return found;
  std::string found_older = with_or_without_prefix(older);
  return has(found_older) ? found_older : found;
}

ForeignTensor WeightsFile::in_file(const std::string& tensor) const {
  const std::string name = mapped(tensor);
  auto theirs = foreign_ == nullptr || name != tensor ? std::nullopt : foreign_->find(tensor);
  if (theirs) {
    for (std::string& part : theirs->names) {  // PEFT saves what it trains beside its adapters (modules_to_save)
      const std::string trained = with_or_without_prefix(std::string(kPeftPrefix) + part);
      part = has(trained) ? trained : name_in_file(part);
    }
    if (has_all(*theirs) && theirs->names.front().starts_with(kPeftPrefix)) return *theirs;
  }
  if (has(name)) return {{name}};
  if (const std::string torch = torch_name(name); has(torch)) return {{torch}};
  if (!theirs) return {{name}};
  if (!has_all(*theirs) && !theirs->tied.empty()) theirs->names = {with_or_without_prefix(theirs->tied)};
  return *theirs;
}

bool WeightsFile::has_all(const ForeignTensor& tensor) const {
  return std::all_of(tensor.names.begin(), tensor.names.end(), [&](const std::string& name) { return has(name); });
}

bool WeightsFile::has_part(const std::string& tensor) const {
  const ForeignTensor theirs = in_file(tensor);
  return std::any_of(theirs.names.begin(), theirs.names.end(), [&](const std::string& name) { return has(name); });
}

/// What an adapter lacks that is there for some of the layers that are one here; empty: there is none of it.
std::string WeightsFile::gap(const ForeignTensor& theirs) const {
  const std::string *there = nullptr, *lacks = nullptr;
  for (const std::string& name : theirs.names) (has(name) ? there : lacks) = &name;
  if (there == nullptr || lacks == nullptr || !there->starts_with(kPeftPrefix)) return "";
  return fmt::format("tensor '{}': expected '{}' beside it, {}", *there, *lacks, kMerge);
}

/// What keeps tensors that should be alike from being one of the model's; empty: nothing.
std::string WeightsFile::difference(const ForeignTensor& theirs, const Shape& shape) const {
  std::vector<float> first(elements(shape)), other(first.size());
  file_.copy(theirs.names.front(), shape, first);
  for (std::size_t i = 1; i < theirs.names.size(); ++i) {
    file_.copy(theirs.names[i], shape, other);
    if (other == first) continue;
    return fmt::format("tensors '{}' and '{}': expected the same values, {}", theirs.names.front(), theirs.names[i],
                       kMerge);
  }
  return "";
}

void WeightsFile::require(const std::vector<NamedShape>& tensors) const {
  WeightsFit fit{.missing = {}, .unused = {}, .refused = {}, .wanted = tensors.size()};
  std::set<std::string> used;
  for (const auto& [name, shape] : tensors) {
    const ForeignTensor theirs = in_file(name);
    used.insert(theirs.names.begin(), theirs.names.end());
    std::string problem = gap(theirs);
    if (problem.empty() && !has_all(theirs)) {
      fit.missing.push_back({name, shape});
      continue;
    }
    for (const std::string& part : theirs.names) {
      if (problem.empty()) problem = file_.problem(part, theirs.shape_there(shape));
    }
    if (problem.empty() && theirs.alike) problem = difference(theirs, shape);
    if (!problem.empty()) fit.refused.push_back(problem);
  }
  for (const auto& [name, loaded] : file_.tensors()) {
    if (!used.contains(name)) fit.unused.push_back({name, loaded.shape});
  }
  std::vector<std::string> adapters;
  for (const NamedShape& tensor : fit.unused) {
    if (tensor.name.starts_with(kPeftPrefix)) adapters.push_back(tensor.name);
  }
  if (fit.fits() && !adapters.empty()) {
    throw Error(ExitCode::data, fmt::format("{}: expected an adapter of the layers that model.lora names and no other, "
                                            "found also {}",
                                            file_.name(), few_of(adapters, 1)));
  }
  if (!fit.fits()) throw Error(ExitCode::data, fit.message(file_.name()));
  for (const auto& tensor : tensors) require_order(tensor.name);
}

void WeightsFile::require_order(const std::string& tensor) const {
  const bool is_lockstep = reading_.names == WeightNames::lockstep, is_torch = reading_.names == WeightNames::torch;
  if (is_lockstep || foreign_ != nullptr) return;
  const auto refuse = [&](const char* verb, const std::string& what, const char* yours) {
    throw Error(
        ExitCode::data,
        fmt::format("{}: PyTorch {} images in the order channel, height, width, lockstep in height, width, "
                    "channel, and {}; put {} in lockstep's order yourself, and set initialize.names to lockstep",
                    file_.name(), verb, what, yours));
  };
  if (is_torch && !flattened_.unclear.empty()) {
    refuse("flattens", flattened_.unclear + " mixes such an image with something else",
           "the columns of the linear layers behind it");
  }
  if (is_torch && !flattened_.unmade.empty()) {
    refuse("makes", flattened_.unmade + " makes one of numbers that no linear layer makes", "the weights before it");
  }
  const bool differs = flattened_.by_name.contains(tensor) || !flattened_.unclear.empty() || !flattened_.unmade.empty();
  if (is_torch || !differs) return;
  const auto found = flattened_.by_name.find(tensor);
  const bool makes = found != flattened_.by_name.end() && found->second.rows != FlattenedImage();
  throw Error(ExitCode::data,
              fmt::format("{}: expected to know who wrote it, since PyTorch flattens images in the order channel, "
                          "height, width, lockstep in height, width, channel, and '{}' {}; {}",
                          file_.name(), tensor, makes ? "makes an image" : "is behind a flatten", reading_.remedy));
}

void WeightsFile::copy(const std::string& tensor, const Shape& shape, std::span<float> out, std::int64_t first) const {
  const ForeignTensor theirs = in_file(tensor);
  const auto flattened = flattened_.by_name.find(tensor);
  const bool turned = reading_.names == WeightNames::torch && flattened != flattened_.by_name.end();
  const Shape there = theirs.shape_there(shape);
  const bool as_it_is = !turned && !theirs.transposed && (theirs.names.size() == 1 || theirs.alike);
  if (as_it_is) return file_.copy(theirs.names.front(), there, out, first);
  std::vector<float> all(elements(shape));
  const std::size_t part = all.size() / theirs.names.size();
  for (std::size_t i = 0; i < theirs.names.size(); ++i) {
    file_.copy(theirs.names[i], there, std::span(all).subspan(i * part, part));
  }
  if (!turned) {
    if (theirs.transposed) all = transpose(all, shape[0], shape[1]);
    std::copy_n(all.begin() + first, out.size(), out.begin());
    return;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t at = first + static_cast<std::int64_t>(i);
    out[i] = all[flattened->second.place_in_torch(at, shape.back())];
  }
}

}  // namespace lockstep::checkpoint
