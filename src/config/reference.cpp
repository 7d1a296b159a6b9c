// The declarations for readers outside: the JSON Schema, and the reference page, which shows the schema as tables.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "config/sections.hpp"
#include "config/sweep_rules.hpp"

namespace lockstep::config {
namespace {

std::string code(const Json& value) {
  return fmt::format("`{}`", value.is_string() ? value.get<std::string>() : value.dump());
}

std::string sentence(std::string text) {
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text.back() == '.' ? text : text + ".";
}

bool is_map(const Json& schema) {
  return schema.contains("properties");
}

std::string limits(const Json& schema) {
  std::string text;
  const auto add = [&](const char* key, const char* word) {
    if (schema.contains(key) && schema[key] != 9007199254740991)
      text += fmt::format(" {} {}", word, schema[key].dump());
  };
  add("minimum", "≥");
  add("exclusiveMinimum", ">");
  add("maximum", "≤");
  add("exclusiveMaximum", "<");
  return text;
}

/// The forms that a value may take: "integer ≥ 1 or `auto`".
std::string forms(const Json& schema) {
  for (const auto* several : {"oneOf", "anyOf"}) {
    if (!schema.contains(several) || is_map(schema)) continue;
    std::vector<std::string> list;
    for (const auto& form : schema[several]) list.push_back(forms(form));
    return fmt::format("{}", fmt::join(list, " or "));
  }
  if (schema.contains("enum")) {
    std::vector<std::string> words;
    for (const auto& word : schema["enum"]) words.push_back(code(word));
    return fmt::format("{}", fmt::join(words, ", "));
  }
  const std::string type = schema.value("type", "");
  if (type == "object") return is_map(schema) && schema["properties"].empty() ? "`{}`" : "map";
  if (type == "array") return "list of " + forms(schema["items"]);
  if (type == "boolean") return "`true`, `false`";
  if (type == "string" && schema.contains("pattern")) {
    const auto pattern = schema["pattern"].get<std::string>();
    if (pattern.find(" of ") != std::string::npos) return "`2 of 5`";
    if (pattern.starts_with("^top")) return "`topK`";
    if (pattern.find('/') != std::string::npos) return "`NAME/METRIC`";
    return pattern.find("epoch") != std::string::npos ? "`1 epoch`, `200 steps`" : "`512 MiB`";
  }
  if (type == "string") return "text";
  return type + limits(schema);
}

/// The map among a schema's forms, also inside lists; null if there is none.
const Json* map_of(const Json& schema) {
  if (is_map(schema)) return schema["properties"].empty() ? nullptr : &schema;
  if (schema.contains("items")) return map_of(schema["items"]);
  for (const auto* several : {"oneOf", "anyOf"}) {
    if (!schema.contains(several)) continue;
    for (const auto& form : schema[several]) {
      if (const Json* map = map_of(form)) return map;
    }
  }
  return nullptr;
}

class Page {
 public:
  void section(const std::string& path, const Json& schema, const std::string& doc) {
    const Json& map = *map_of(schema);
    const auto [seen, fresh] = seen_.emplace(map.dump(), path);
    text_ += fmt::format("\n## `{}`\n\n", path);
    if (!doc.empty()) text_ += sentence(doc) + "\n\n";
    if (!fresh) return void(text_ += fmt::format("The same as [`{}`](#{}).\n", seen->second, anchor(seen->second)));
    text_ += "| key | value | default | meaning |\n|---|---|---|---|\n";
    for (const auto& [key, value] : map["properties"].items()) {
      if (!is_layer_input(path, key)) row(path, map, key, value);
    }
    for (const auto& [key, value] : map["properties"].items()) {
      const bool list = value.value("type", "") == "array";
      const std::string below = fmt::format("{}.{}{}", path, key, list ? "[]" : "");
      if (shown(value, below)) section(below, value, value.value("description", ""));
      const Json each = value.value("additionalProperties", Json());  // of a map with names that the user chooses
      if (map_of(each) != nullptr) section(below + ".path", each, "");
    }
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  /// The anchor that GitHub makes of the heading.
  static std::string anchor(const std::string& path) {
    std::string text;
    for (const char c : path) {
      if (c != '.' && c != '[' && c != ']') text += c;
    }
    return text;
  }

  void row(const std::string& path, const Json& map, const std::string& key, const Json& value) {
    std::string by_default = value.contains("default") ? default_text(value) : "";
    for (const auto& required : map.value("required", Json::array())) {
      if (required == key) by_default = "required";
    }
    if (is_alternative(map, key)) by_default = "one of these";
    const bool more = shown(value, path + "." + key);
    const std::string name =
        more ? fmt::format("[`{}`](#{}{})", key, anchor(path), anchor(key)) : fmt::format("`{}`", key);
    text_ += fmt::format("| {} | {} | {} | {} |\n", name, forms(value), by_default, value.value("description", ""));
  }

  static bool is_alternative(const Json& map, const std::string& key) {
    for (const auto& choice : map.value("oneOf", Json::array())) {
      if (choice.contains("required") && choice["required"][0] == key) return true;
    }
    return false;
  }

  /// For a map only the name of its chosen alternative; the rest is in the map's own section.
  static std::string default_text(const Json& value) {
    const Json& default_value = value["default"];
    if (!default_value.is_object()) return code(default_value);
    for (const auto& [key, inner] : default_value.items()) {
      if (is_alternative(*map_of(value), key)) return code(key);
    }
    return "as below";
  }

  /// Every layer takes `inputs`: not worth a row in each table.
  static bool is_layer_input(const std::string& path, const std::string& key) {
    return key == "inputs" && path.find("layers[].") != std::string::npos;
  }

  /// Whether a value has its own section with a table.
  static bool shown(const Json& value, const std::string& path) {
    const Json* map = map_of(value);
    if (map == nullptr) return false;
    for (const auto& [key, inner] : (*map)["properties"].items()) {
      if (!is_layer_input(path, key)) return true;
    }
    return false;
  }

  std::map<std::string, std::string> seen_;  // map schema -> the first path that has it
  std::string text_;
};

constexpr const char* kHead = R"(# The job file

Written by `lockstep schema --markdown`, from the declarations that parse the file. `lockstep schema` prints the
same as a JSON Schema (draft-07), for editors.

A job is one YAML file with the root key `job`. The root key `sweep` is a [search](sweeps.md) over its settings; other
root keys belong to the Helm chart. Where a section
holds one of several alternatives it is a map with one key (`optimizer: {sgd: {momentum: 0.9}}`); an alternative
whose settings all have defaults may be written as a bare word (`optimizer: sgd`). "One of these" in the column
of defaults marks alternatives.

- **Overrides.** `lockstep train job.yaml batch_size=256 data.train.images=/data/c10.tar.zst` sets values by path,
  without the leading `job.`; items of lists by their number (`model.layers[2].conv.filters=64`). Setting one of two
  alternatives replaces the other.
- **Paths** are relative to the job file's folder if something is there, else to the working directory; those of
  overrides to the working directory. Globs are allowed where data are named.
- **Numbers.** An integral real number is an integer (`1e+06`). Integers go up to 2^53 - 1.
- **Text** that looks like a number or `true` is put in quotes, and so is what Helm or YAML 1.1 reads in another way:
  `yes`, `No`, `TRUE`, `010`, `0x1f`, `1_000`, `12:30`, `2024-01-01`, as a value or a key. Without quotes it is refused;
  on the command line, which Helm never reads, it is text.
- **YAML.** One document, no tags, no key twice. Anchors and aliases work; maps are not merged (`<<`).
)";

}  // namespace

namespace {

/// In a job with plugins the schema cannot know the names of what they add: the properties that hold some are then
/// anything, and the program alone checks them.
void open_to_plugins(Json& job) {
  Json strict = Json::object();
  for (const auto* key :
       {"model", "data", "loss", "metrics", "optimizer", "learning_rate", "early_stop", "checkpoint"}) {
    Json& property = job["properties"][key];
    strict[key] = std::exchange(property, Json{{"description", property["description"]}});
  }
  job["if"] = {{"required", Json::array({"plugins"})}};
  job["else"] = {{"properties", strict}};
}

}  // namespace

std::string schema(const Catalogue& catalogue, bool plugins_known) {
  Json json = {{"$schema", "http://json-schema.org/draft-07/schema#"},
               {"title", "lockstep job"},
               {"description",
                "One training run, or a search over its settings. Root keys other than `job` and `sweep` belong to the "
                "Helm chart."},
               {"type", "object"},
               {"additionalProperties", false},
               {"required", Json::array({"job"})},
               {"properties", Json::object()}};
  json["properties"]["job"] = job_section(catalogue).rule->schema();
  if (!plugins_known) open_to_plugins(json["properties"]["job"]);
  json["properties"]["job"]["description"] = "the training run";
  json["properties"]["sweep"] = sweep_section(catalogue).rule->schema();
  json["properties"]["sweep"]["description"] = "a search over settings of the job, for `lockstep sweep`";
  for (const auto& key : chart_keys()) {
    json["properties"][key] = Json{{"description", "of the Helm chart; `lockstep` does not read it"}};
  }
  return json.dump(2);
}

std::string reference_markdown(const Catalogue& catalogue) {
  Page page;
  page.section("job", job_section(catalogue).rule->schema(), "");
  page.section("sweep", sweep_section(catalogue).rule->schema(),
               "a search over settings of the job, for `lockstep sweep`");
  std::string text = kHead + page.take();
  while (text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace lockstep::config
