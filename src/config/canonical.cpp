// The canonical form of a job, and the digest that tells whether two runs compute the same.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "config/sections.hpp"
#include "core/digest.hpp"
#include "core/untrusted.hpp"

namespace lockstep::config {
namespace {

/// "/data/c10.tar" and "c10.tar" count as the same data; whether they are is up to the digest of their contents.
void keep_file_name(Json& value) {
  if (value.is_array()) {
    for (auto& item : value) keep_file_name(item);
  } else if (value.is_string()) {
    const auto& path = value.get_ref<const std::string&>();
    const auto end = path.find_last_not_of('/');
    const auto slash = path.find_last_of('/', end);
    value = path.substr(slash == std::string::npos ? 0 : slash + 1,
                        end == std::string::npos ? 0 : end - (slash == std::string::npos ? 0 : slash + 1) + 1);
  }
}

void keep_file_names(Json& data) {
  for (const auto* key : {"train", "validation"}) {
    if (!data.contains(key)) continue;
    if (data[key].contains("list")) keep_file_name(data[key]["list"]);
    for (auto& source : data[key]) {
      if (!source.is_object()) continue;
      for (const auto* path : {"path", "labels", "weights"}) {
        if (source.contains(path)) keep_file_name(source[path]);
      }
    }
  }
}

/// Whether the learning rate depends on evaluations: whether its schedule has a metric.
bool rate_follows_evaluations(const Json& job) {
  const Json::json_pointer where("/learning_rate/schedule");
  if (!job.contains(where)) return false;
  const Json& schedule = job.at(where);
  return std::any_of(schedule.begin(), schedule.end(),
                     [](const Json& settings) { return settings.is_object() && settings.contains("metric"); });
}

/// A validation set has the tokens of the training set. Earlier versions wrote the usual ones where it names none.
void name_usual_tokens(Json& data) {
  if (!data.contains("validation")) return;
  for (const auto& [kind, context, tokenizer] :
       {std::tuple("text", 64, "characters"), {"texts", 128, "bytes"}, {"tokens", 64, ""}}) {
    if (!data["validation"].is_object() || !data["validation"].contains(kind)) continue;
    Json& source = data["validation"][kind];
    if (source.value("context", Json()) == "auto") source["context"] = context;
    if (source.value("tokenizer", Json()) == "auto") source["tokenizer"] = tokenizer;
  }
}

/// Keeps exactly what the parameters at a given step depend on, so that a run can be resumed elsewhere.
///
/// Left out: what only names or reports the run (name, run_directory, telemetry, checkpoint, test data), the paths of
/// plugins, whose contents checkpoints compare, what lets a run continue that would otherwise end (data.bad_samples: up
/// to that point nothing differs), and what changes only the speed (threads, devices, balance, timeout, buckets,
/// blocks, parts and sharding, cache and prefetching). When, on what and by which metrics to evaluate matters only if
/// early_stop may end the run, or the learning rate follows the evaluations. Kept although they look like limits:
/// epochs and steps, since schedules depend on them. Only the last component of a path is kept: the contents of files
/// are covered by the data set's own digest. Of `exact` it only matters whether it is `never`: required and preferred
/// sum in the same order. Devices and libraries are compared by the fingerprint.
Json what_counts(const Json& whole) {
  Json job = whole.at("job");
  for (const auto* key : {"name", "plugins", "run_directory", "telemetry", "checkpoint", "threads", "device", "devices",
                          "cuda_graphs", "recompute", "balance", "timeout", "bucket_bytes", "parallel"}) {
    job.erase(key);
  }
  for (const auto* key : {"test", "cache", "bad_samples", "threads", "depth"}) job["data"].erase(key);
  if (job["model"].contains("layers")) {
    for (auto& layer : job["model"]["layers"]) {
      layer.erase("block");
      layer.erase("part");
    }
  }
  job["exact"] = job["exact"] != "never";
  if (!job.contains("early_stop") && !rate_follows_evaluations(job)) {
    job.erase("evaluate");
    job.erase("metrics");
    if (job["optimizer"].contains("average")) job["optimizer"]["average"].erase("evaluate");
  }
  if (job.contains("early_stop")) {
    job["early_stop"].erase("restore_best");
    if (job["early_stop"].value("min_delta", 0.0) == 0) job["early_stop"].erase("min_delta");  // absent in earlier jobs
  }
  name_usual_tokens(job["data"]);
  keep_file_names(job["data"]);
  if (job["data"].value("resample", "never") == "never") job["data"].erase("resample");  // absent in earlier jobs
  if (job["data"].contains("soft_labels")) keep_file_name(job["data"]["soft_labels"]["from"]);
  if (job.contains("initialize")) {
    Json& initialize = job["initialize"];
    keep_file_name(initialize["from"]);
    if (initialize["names"] == "auto") initialize.erase("names");  // absent in jobs of earlier versions
  }
  return job;
}

/// What counts of a canonical form; null if the text is not one.
Json counted(const std::string& text) {
  const Json json = nests_too_deep(text) ? Json() : Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() && json.contains("job") ? what_counts(json) : Json();
}

/// No longer than a line has room for beside another, and whole characters of UTF-8.
std::string shortened(std::string text) {
  constexpr std::size_t kLongest = 48;
  if (text.size() <= kLongest) return text;
  std::size_t end = kLongest - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "...";
}

std::string text_of(const Json& value) {
  if (value.is_string()) return shortened(value.get<std::string>());
  const bool is_short =
      std::none_of(value.begin(), value.end(), [](const Json& inner) { return inner.is_structured(); });
  if (value.is_array() && !is_short) return fmt::format("{} {}", value.size(), value.size() == 1 ? "entry" : "entries");
  if (!value.is_object()) return shortened(value.dump());
  std::string keys;
  for (const auto& [key, inner] : value.items()) keys += (keys.empty() ? "" : ", ") + key;
  return "{" + shortened(keys) + "}";
}

/// Collects differences, each told where it begins: of another optimizer or model, not key by key.
class Comparison {
 public:
  void compare(const Json& a, const Json& b, const std::string& path) {
    if (a == b) return;
    if (a.is_object() && b.is_object()) return compare_objects(a, b, path);
    if (a.is_array() && b.is_array() && a.size() == b.size()) {
      for (std::size_t i = 0; i < a.size(); ++i) compare(a[i], b[i], fmt::format("{}[{}]", path, i));
      return;
    }
    found.push_back(fmt::format("{}: {}, now {}", path, text_of(a), text_of(b)));
  }
  std::vector<std::string> found;

 private:
  void compare_objects(const Json& a, const Json& b, const std::string& path) {
    const std::vector<std::string> gone = only_in(a, b), new_ones = only_in(b, a);
    if (gone.size() == 1 && new_ones.size() == 1 && a[gone[0]].is_structured() && b[new_ones[0]].is_structured()) {
      found.push_back(fmt::format("{}: {}, now {}", path, gone[0], new_ones[0]));
    } else {
      for (const auto& key : gone) found.push_back(fmt::format("{}.{}: {}, now absent", path, key, text_of(a[key])));
      for (const auto& key : new_ones)
        found.push_back(fmt::format("{}.{}: absent, now {}", path, key, text_of(b[key])));
    }
    for (const auto& [key, value] : a.items()) {
      if (b.contains(key)) compare(value, b[key], path + "." + key);
    }
  }

  static std::vector<std::string> only_in(const Json& a, const Json& b) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : a.items()) {
      if (!b.contains(key)) keys.push_back(key);
    }
    return keys;
  }
};

/// `whole`: {"job": {...}}, as the rules write it.
CanonicalJob canonical_job(const Json& whole) {
  return {whole.dump(2) + "\n", sha256(what_counts(whole).dump())};
}

}  // namespace

CanonicalJob canonical(const Job& job, const Catalogue& catalogue) {
  return canonical_job({{"job", job_section(catalogue).rule->write(&job)}});
}

std::vector<std::string> differences(const std::string& text_a, const std::string& text_b) {
  Comparison comparison;
  comparison.compare(counted(text_a), counted(text_b), "job");
  return comparison.found;
}

bool can_change_between_steps(std::string_view path) {
  const auto within = [&](std::string_view key) {
    return path.starts_with(key) && (path.size() == key.size() || path[key.size()] == '.' || path[key.size()] == '[');
  };
  if (within("learning_rate") || within("clip_norm") || within("loss") || within("data.augment")) return true;
  if (within("optimizer")) {  // its kind decides which states it has, and when a group is unfrozen, since when
    return std::count(path.begin(), path.end(), '.') > 1 && !path.ends_with(".freeze_until");
  }
  return within("model") && (path.ends_with(".dropout") || path.ends_with(".dropout.rate"));
}

std::vector<std::string> fixed_differences(const std::string& text_a, const std::string& text_b) {
  constexpr std::size_t kRoot = std::string_view("job.").size();
  auto all = differences(text_a, text_b);
  std::erase_if(all, [](const std::string& text) {
    const std::string_view path = std::string_view(text).substr(0, text.find(": "));
    return path.size() > kRoot && can_change_between_steps(path.substr(kRoot));
  });
  return all;
}

namespace {

void erase_changeable(Json& value, const std::string& path) {
  if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) erase_changeable(value[i], fmt::format("{}[{}]", path, i));
  }
  if (!value.is_object()) return;
  for (auto item = value.begin(); item != value.end();) {
    const std::string inner = path.empty() ? item.key() : path + "." + item.key();
    if (can_change_between_steps(inner)) {
      item = value.erase(item);
    } else {
      erase_changeable(*item++, inner);
    }
  }
}

}  // namespace

std::string run_identity(const std::string& canonical_text) {
  Json job = counted(canonical_text);
  job.erase("steps");
  job.erase("epochs");
  erase_changeable(job, "");
  return sha256(job.dump()).substr(0, 12);
}

std::optional<RunLength> length_if_else_equal(const std::string& saved, const std::string& now) {
  Json a = counted(saved), b = counted(now);
  if (a.is_null()) return std::nullopt;
  const RunLength length{a.value("steps", std::int64_t{0}), a.value("epochs", 0.0)};
  for (Json* job : {&a, &b}) {
    job->erase("steps");
    job->erase("epochs");
  }
  return a == b ? std::optional(length) : std::nullopt;
}

}  // namespace lockstep::config
