#include "data/input/schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/untrusted.hpp"
#include "core/words.hpp"
#include "data/readers/row_windows.hpp"
#include "lockstep/error.hpp"

namespace lockstep::input {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<Feature::Kind, const char*>, 7> kKinds = {{{Feature::Kind::image, "image"},
                                                                          {Feature::Kind::label, "label"},
                                                                          {Feature::Kind::tokens, "tokens"},
                                                                          {Feature::Kind::tensor, "tensor"},
                                                                          {Feature::Kind::columns, "columns"},
                                                                          {Feature::Kind::mask, "mask"},
                                                                          {Feature::Kind::weight, "weight"}}};
constexpr std::array kTypes = {DType::f32, DType::bf16, DType::f16, DType::f64,
                               DType::i64, DType::i32,  DType::u16, DType::u8};

Json to_json(const Feature& feature) {
  const auto* kind = std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& k) { return k.first == feature.kind; });
  Json json = {{"name", feature.name},
               {"kind", kind->second},
               {"dtype", std::string(name_of(feature.spec.dtype))},
               {"shape", feature.spec.shape}};
  if (!feature.classes.empty()) json["classes"] = feature.classes;
  if (!feature.offsets.empty()) json["offsets"] = feature.offsets;
  return json;
}

Feature parse_feature(const Json& json) {
  Feature feature{json.at("name").get<std::string>(), {}, {{}, shape_of(json.at("shape"))}};
  if (json.contains("classes")) json.at("classes").get_to(feature.classes);
  if (json.contains("offsets")) json.at("offsets").get_to(feature.offsets);
  const auto kind = json.at("kind").get<std::string>(), dtype = json.at("dtype").get<std::string>();
  for (const auto& [value, name] : kKinds) {
    if (name == kind) feature.kind = value;
  }
  for (const DType type : kTypes) {
    if (name_of(type) == dtype) feature.spec.dtype = type;
  }
  const bool fits = feature.offsets.empty() || std::ssize(feature.offsets) == feature.spec.elements();
  if (!is_sound(feature) || !fits)
    throw Json::out_of_range::create(401, "a feature is not what its kind promises", &json);
  return feature;
}

Json to_json(const Column& column) {
  Json json = {{"name", column.name}, {"categories", column.categories}, {"missing", column.missing}};
  if (column.dates) json["dates"] = true;
  return json;
}

Column parse_column(const Json& json) {
  return {json.at("name").get<std::string>(), json.at("categories").get<std::vector<std::string>>(),
          json.at("missing").get<bool>(), json.value("dates", false)};
}

Json to_json(const RowWindow& window) {
  return {{"rows", window.rows},
          {"ahead", window.ahead},
          {"targets", window.targets},
          {"series", window.series},
          {"time", window.time}};
}

/// `info`: with its features, which must be those of such windows.
RowWindow parse_window(const Json& json, const DataSetInfo& info) {
  RowWindow window{integer_of<std::int64_t>(json.at("rows")), shape_of(json.at("ahead")),
                   json.at("targets").get<std::vector<std::string>>(), json.at("series").get<std::string>(),
                   json.at("time").get<std::string>()};
  const auto& ahead = window.ahead;
  const bool ascends = std::adjacent_find(ahead.begin(), ahead.end(), std::greater_equal<>()) == ahead.end();
  const bool fits = std::any_of(info.features.begin(), info.features.end(), [&](const Feature& feature) {
    return feature.kind == Feature::Kind::columns && feature.spec.shape.size() == 2 &&
           feature.spec.shape[0] == window.rows;
  });
  if (!fits || ahead.empty() || ahead.front() < 1 || !ascends) {
    throw Json::out_of_range::create(401, "a window is not of the features' rows", &json);
  }
  return window;
}

/// Of each number of a feature.
data::ChannelStatistics parse_target(const Json& json, const std::string& name, const DataSetInfo& info) {
  data::ChannelStatistics statistics{json.at("mean").get<std::vector<double>>(),
                                     json.at("std").get<std::vector<double>>()};
  const auto feature = std::find_if(info.features.begin(), info.features.end(), [&](const Feature& f) {
    return f.name == name && f.kind == Feature::Kind::tensor;
  });
  const auto fits = [&](const auto& values) { return std::ssize(values) == feature->spec.elements(); };
  const auto& stddev = statistics.stddev;
  if (feature == info.features.end() || !fits(statistics.mean) || !fits(stddev) ||
      !std::all_of(stddev.begin(), stddev.end(), [](double value) { return value > 0; })) {
    throw Json::out_of_range::create(401, "the statistics of a target are not of its numbers", &json);
  }
  return statistics;
}

Json to_json(const MaskedTokens& masked) {
  return {{"share", masked.share}, {"span", masked.span}, {"token", masked.token}};
}

MaskedTokens parse_masked(const Json& json, const DataSetInfo& info) {
  const MaskedTokens masked{json.at("share").get<double>(), json.at("span").get<double>(),
                            integer_of<std::int64_t>(json.at("token"))};
  const bool fits = masked.share > 0 && masked.share <= 1 && masked.span >= 1 && masked.token >= -1;
  if (!fits || masked.token >= info.vocabulary) {
    throw Json::out_of_range::create(401, "masked tokens are not of the vocabulary", &json);
  }
  return masked;
}

DataSetInfo parse_info(const Json& json) {
  DataSetInfo info;
  json.at("format").get_to(info.format);
  json.at("source").get_to(info.source);
  for (const auto& feature : json.at("features")) info.features.push_back(parse_feature(feature));
  json.at("class_names").get_to(info.class_names);
  info.vocabulary = integer_of<std::int64_t>(json.at("vocabulary"));
  json.at("token_text").get_to(info.token_text);
  info.tokenizer = json.value("tokenizer", "");
  if (json.contains("masked")) info.masked = parse_masked(json.at("masked"), info);
  if (json.contains("columns")) {  // of tables only
    for (const auto& column : json.at("columns")) info.columns.push_back(parse_column(column));
  }
  if (json.contains("window")) info.window = parse_window(json.at("window"), info);
  json.at("digest").get_to(info.digest);
  return info;
}

constexpr std::size_t kDigits = 12;  // of an identity

std::string to_hex(const data::IdentitySketch& sketch) {
  std::string digits;
  for (const std::uint64_t one : sketch.smallest) digits += fmt::format("{:012x}", one);
  return digits;
}

data::IdentitySketch parse_sketch(const Json& json) {
  const auto digits = json.get<std::string>();
  data::IdentitySketch sketch;
  for (std::size_t at = 0; at + kDigits <= digits.size(); at += kDigits) {
    std::uint64_t one = 0;
    const char* const end = digits.data() + at + kDigits;
    if (std::from_chars(digits.data() + at, end, one, 16).ptr != end) break;
    sketch.smallest.push_back(one);
  }
  const auto& all = sketch.smallest;
  if (all.size() * kDigits != digits.size() || all.size() > data::IdentitySketch::kMost ||
      std::adjacent_find(all.begin(), all.end(), std::greater_equal<>()) != all.end()) {
    throw Json::out_of_range::create(401, "the samples of training are not ascending numbers", &json);
  }
  return sketch;
}

}  // namespace

std::string Schema::text() const {
  Json features = Json::array();
  for (const auto& feature : info.features) {
    if (feature.kind != Feature::Kind::weight) features.push_back(to_json(feature));  // of training alone
  }
  Json json = {{"format", info.format},
               {"source", info.source},
               {"features", features},
               {"class_names", info.class_names},
               {"vocabulary", info.vocabulary},
               {"token_text", info.token_text},
               {"mean", mean},
               {"std", stddev},
               {"digest", info.digest},
               {"sets", digests}};
  if (!info.tokenizer.empty()) json["tokenizer"] = info.tokenizer;
  if (info.masked.share > 0) json["masked"] = to_json(info.masked);
  for (const Column& column : info.columns) json["columns"].push_back(to_json(column));
  if (info.window.rows > 0) json["window"] = to_json(info.window);
  if (!trained.smallest.empty()) json["trained"] = to_hex(trained);
  for (const auto& [name, of] : targets) json["targets"][name] = {{"mean", of.mean}, {"std", of.stddev}};
  // A class has the name of its folder, which need not be UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Schema Schema::parse(const std::string& text, const std::string& where) {
  Schema schema;
  try {
    const Json json = Json::parse(text);
    schema.info = parse_info(json);
    json.at("mean").get_to(schema.mean);
    json.at(json.contains("std") ? "std" : "deviation").get_to(schema.stddev);  // its former name
    if (json.contains("sets")) json.at("sets").get_to(schema.digests);
    if (json.contains("trained")) schema.trained = parse_sketch(json.at("trained"));
    if (json.contains("targets")) {
      for (const auto& [name, of] : json.at("targets").items()) {
        schema.targets[name] = parse_target(of, name, schema.info);
      }
    }
  } catch (const Json::exception& error) {
    throw Error(ExitCode::data,
                fmt::format("{}: what it says of the training data is damaged: {}", where, error.what()));
  }
  return schema;
}

namespace {

std::vector<std::string> names_of(const std::vector<Column>& columns) {
  std::vector<std::string> names;
  for (const Column& column : columns) names.push_back(column.name);
  return names;
}

std::string other_columns(const std::vector<Column>& theirs, const std::vector<Column>& ours) {
  const auto names = names_of(theirs), found = names_of(ours);
  if (names != found) return "the columns " + both_of(names, found);
  const auto kind = [](const Column& column) {
    return (column.dates                ? "dates"
            : column.categories.empty() ? "numbers"
                                        : "the categories " + few_of(column.categories, 10)) +
           (column.missing ? " or nothing" : "");
  };
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (theirs[i].categories == ours[i].categories && theirs[i].missing == ours[i].missing &&
        theirs[i].dates == ours[i].dates) {
      continue;
    }
    const bool both = !theirs[i].categories.empty() && !ours[i].categories.empty();
    if (both && theirs[i].categories != ours[i].categories) {
      return fmt::format("in column '{}' the categories {}", names[i],
                         both_of(theirs[i].categories, ours[i].categories));
    }
    return fmt::format("{} in column '{}', found {}", kind(theirs[i]), names[i], kind(ours[i]));
  }
  return "";
}

}  // namespace

std::string other_reading(const DataSetInfo& theirs, const DataSetInfo& ours) {
  if (!theirs.columns.empty() && !ours.columns.empty()) {
    if (auto other = other_columns(theirs.columns, ours.columns); !other.empty()) return other;
    if (theirs.window.rows != ours.window.rows || theirs.window.ahead != ours.window.ahead) {
      return fmt::format("{}, found {}", data::window_text(theirs.window), data::window_text(ours.window));
    }
  }
  const auto differ = [](const auto& one, const auto& other) { return !one.empty() && !other.empty() && one != other; };
  if (differ(theirs.token_text, ours.token_text)) return "the same characters, found others";
  if (differ(theirs.tokenizer, ours.tokenizer)) return "the same tokenizer, found another";
  const auto &known = theirs.class_names, &classes = ours.class_names;
  if (known != classes && std::is_permutation(known.begin(), known.end(), classes.begin(), classes.end())) {
    return "the classes " + both_of(known, classes);
  }
  return "";
}

std::vector<std::string> far_columns(const Schema& schema, const DataSet& set) {
  constexpr std::int64_t kMostSamples = 10'000;
  constexpr double kFar = 10;
  const auto& columns = schema.info.columns;
  const auto& features = set.info().features;
  if (schema.mean.empty() || columns.empty() || features.empty() || features[0].kind != Feature::Kind::columns)
    return {};
  struct Count {
    std::int64_t all = 0, far = 0;
    double sum = 0;
  };
  std::vector<Count> counts(columns.size());
  Sample sample;
  std::vector<double> values;
  const std::int64_t looked = std::min(set.size(), kMostSamples);
  for (std::int64_t i = 0; i < looked; ++i) {
    set.read(i * set.size() / looked, sample);
    if (sample[0].tensor.dtype() == DType::f64) {
      const auto read = sample[0].tensor.as<double>();
      values.assign(read.begin(), read.end());
    } else if (sample[0].tensor.dtype() == DType::f32) {  // of a plugin's reader
      const auto read = sample[0].tensor.as<float>();
      values.assign(read.begin(), read.end());
    }
    for (std::size_t at = 0; at + schema.mean.size() <= values.size(); at += schema.mean.size()) {
      std::size_t element = 0;
      for (std::size_t c = 0; c < columns.size(); ++c) {
        const double value = values[at + element], mean = schema.mean[element], deviation = schema.stddev[element];
        element += columns[c].elements();
        if (!columns[c].categories.empty() || columns[c].dates || std::isnan(value)) continue;
        ++counts[c].all;
        counts[c].far += std::abs(value - mean) > kFar * deviation ? 1 : 0;
        counts[c].sum += value;
      }
    }
  }
  std::vector<std::string> warnings;
  for (std::size_t c = 0, element = 0; c < columns.size(); ++c) {
    const auto& [all, far, sum] = counts[c];
    if (far > 0 && far * 2 >= all) {
      warnings.push_back(
          fmt::format("column '{}': its mean is {:.4g}, that of the training set {:.4g} with a standard deviation of "
                      "{:.4g}: are they "
                      "in the same units?",
                      columns[c].name, sum / all, schema.mean[element], schema.stddev[element]));
    }
    element += columns[c].elements();
  }
  return warnings;
}

}  // namespace lockstep::input
