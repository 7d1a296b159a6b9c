// The declarations for readers outside: the JSON Schema, and the reference page, which shows the schema as tables.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
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

bool is_map(const Json& schema) {
  return schema.contains("properties");
}

/// " ≥ 1", or an interval such as " [0, 1)".
std::string limits(const Json& schema) {
  const auto bound = [&](const char* key) {
    return schema.contains(key) && schema[key] != 9007199254740991 ? schema[key].dump() : "";
  };
  const std::string least = bound("minimum"), above = bound("exclusiveMinimum");
  const std::string most = bound("maximum"), below = bound("exclusiveMaximum");
  const std::string low = least + above, high = most + below;
  if (low.empty() && high.empty()) return "";
  if (high.empty()) return fmt::format(" {} {}", above.empty() ? "≥" : ">", low);
  if (low.empty()) return fmt::format(" {} {}", below.empty() ? "≤" : "<", high);
  return fmt::format(" {}{}, {}{}", above.empty() ? '[' : '(', low, high, below.empty() ? ']' : ')');
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

/// Whether a form is the names of a map's alternatives, which the map's section lists.
bool is_bare_word_of(const Json& form, const Json& map) {
  if (!form.contains("enum")) return false;
  return std::ranges::all_of(form["enum"], [&](const Json& word) {
    return word.is_string() && map["properties"].contains(word.get<std::string>());
  });
}

std::string forms(const Json& schema);

/// The word for a text with a pattern, which the page's head explains.
std::string pattern_form(const std::string& pattern) {
  if (pattern.find(" of ") != std::string::npos) return "`2 of 5`";
  if (pattern.starts_with("^top") || pattern.find('/') != std::string::npos) return "metric";
  return pattern.find("epoch") != std::string::npos ? "period" : "bytes";
}

/// Patterns mark the forms of a metric and of a size in bytes; "" for any other value.
std::string word_of_patterns(const Json& list) {
  for (const auto& form : list) {
    std::string word = form.contains("pattern") ? pattern_form(form["pattern"].get<std::string>()) : "";
    if (word == "bytes") return word;
    if (word != "metric") continue;
    const Json names = list[0].value("enum", Json::array());
    return std::ranges::find(names, Json("loss")) == names.end() ? word : "`loss`, " + word;
  }
  return "";
}

/// Whether a list's items are those that stand alone before it, or the last of them.
bool is_list_of_last(const std::string& list, const std::vector<std::string>& single) {
  return list == fmt::format("list of {}", fmt::join(single, ", ")) || list == "list of " + single.back() ||
         (single.back() == "name" && list == "list of names");
}

/// The forms of a value, a list of such last. A map has a section of its own, which the key links to.
std::string alternatives(const Json& schema, const Json& list) {
  if (std::string word = word_of_patterns(list); !word.empty()) return word;
  const Json* map = map_of(schema);
  std::vector<std::string> single;
  std::string several;
  for (const auto& form : list) {
    if (map != nullptr && is_bare_word_of(form, *map)) {
      single.emplace_back("name");  // the map's section lists them
    } else if (const std::string text = forms(form); text.starts_with("list of ")) {
      several = text;
    } else if (!text.empty()) {
      single.push_back(text);
    }
  }
  std::string joined = fmt::format("{}", fmt::join(single, ", "));
  if (several.empty()) return joined;
  if (joined.empty()) return several;
  return fmt::format("{}, {}", joined, is_list_of_last(several, single) ? "list" : several);
}

/// The forms that a value may take, but for a map: "`auto`, integer ≥ 1".
std::string forms(const Json& schema) {
  for (const auto* several : {"oneOf", "anyOf"}) {
    if (schema.contains(several) && !is_map(schema)) return alternatives(schema, schema[several]);
  }
  if (schema.contains("enum")) {
    std::vector<std::string> words;
    for (const auto& word : schema["enum"]) words.push_back(code(word));
    return fmt::format("{}", fmt::join(words, ", "));
  }
  const std::string type = schema.value("type", "");
  if (type == "object") return map_of(schema) != nullptr ? "" : is_map(schema) ? "`{}`" : "map";
  if (type == "array") {
    const std::string item = forms(schema["items"]);
    return item.empty() ? "list" : item == "name" ? "list of names" : "list of " + item;
  }
  if (type == "boolean") return "boolean";
  if (type == "string" && schema.contains("pattern")) return pattern_form(schema["pattern"].get<std::string>());
  if (type == "string") return "text";
  const std::string bounds = limits(schema);
  return type == "number" && !bounds.empty() ? bounds.substr(1) : type + bounds;
}

/// What a row says of a key.
struct Row {
  std::string key, form, by_default, meaning;
  bool alternative;
};

class Page {
 public:
  void section(const std::string& path, const Json& schema) {
    const Json& map = *map_of(schema);
    for (const auto& [key, value] : map["properties"].items()) {
      const std::string below = below_of(path, key, value);
      if (shown(value, below)) sections_.emplace(map_of(value)->dump(), below);
    }
    text_ += fmt::format("\n## `{}`\n", path);
    tables(path, rows(path, map));
    for (const auto& [key, value] : map["properties"].items()) {
      const std::string below = below_of(path, key, value);
      if (shown(value, below) && sections_.at(map_of(value)->dump()) == below) section(below, value);
      const Json each = value.value("additionalProperties", Json());  // of a map with names that the user chooses
      if (map_of(each) != nullptr) section(below + ".path", each);
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

  static std::string below_of(const std::string& path, const std::string& key, const Json& value) {
    return fmt::format("{}.{}{}", path, key, value.value("type", "") == "array" ? "[]" : "");
  }

  std::vector<Row> rows(const std::string& path, const Json& map) const {
    std::vector<Row> list;
    for (const auto& [key, value] : map["properties"].items()) {
      if (!is_layer_input(path, key)) list.push_back(row(path, map, key, value));
    }
    return list;
  }

  Row row(const std::string& path, const Json& map, const std::string& key, const Json& value) const {
    std::string by_default = value.contains("default") ? default_text(value) : "";
    for (const auto& required : map.value("required", Json::array())) {
      if (required == key) by_default = "required";
    }
    std::string name = code(key);
    if (const std::string below = below_of(path, key, value); shown(value, below))
      name = fmt::format("[{}](#{})", name, anchor(sections_.at(map_of(value)->dump())));
    return {name, forms(value), by_default, value.value("description", ""), is_alternative(map, key)};
  }

  /// The alternatives of a map, then its other keys, less the rows that an earlier section has.
  void tables(const std::string& path, const std::vector<Row>& all) {
    std::map<std::string, std::vector<std::string>> elsewhere;  // path -> keys
    std::map<std::string, std::size_t> lengths;                 // path -> bytes of these rows
    for (const auto& row : all) {
      const auto at = rows_.find(line(row));
      if (at == rows_.end()) continue;
      elsewhere[at->second].push_back(row.key);
      lengths[at->second] += at->first.size();
    }
    std::erase_if(elsewhere, [&](const auto& entry) { return lengths[entry.first] < kWorthALink; });
    std::string one_of, others;
    for (const auto& row : all) {
      const auto at = rows_.emplace(line(row), path).first;
      if (at->second != path && elsewhere.contains(at->second)) continue;
      (row.alternative ? one_of : others) += line(row);
    }
    if (!one_of.empty()) text_ += "\nOne of:\n\n|key|value|meaning|\n|---|---|---|\n" + one_of;
    for (const auto& [other, keys] : elsewhere)
      text_ += fmt::format("\n{}: as in [`{}`](#{}).\n", fmt::join(keys, ", "), other, anchor(other));
    if (!one_of.empty() && !others.empty()) text_ += "\nOther keys:\n";
    if (!others.empty()) text_ += "\n|key|value|default|meaning|\n|---|---|---|---|\n" + others;
  }

  static std::string line(const Row& row) {
    if (row.alternative) return fmt::format("|{}|{}|{}|\n", row.key, row.form, row.meaning);
    return fmt::format("|{}|{}|{}|{}|\n", row.key, row.form, row.by_default, row.meaning);
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
    return "";
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

  static constexpr std::size_t kWorthALink = 100;  // bytes of rows that a link to an earlier section replaces

  std::map<std::string, std::string> sections_;  // map schema -> the path whose section shows it
  std::map<std::string, std::string> rows_;      // row -> the path whose section has it
  std::string text_;
};

constexpr const char* kHead = R"(# The job file

Printed by `lockstep schema --markdown`; `lockstep schema` prints a JSON Schema (draft-07) for editors.

A job is one YAML file with the root key `job`. The root key `sweep` is a [search](sweeps.md) over its settings; other
root keys belong to the Helm chart.

- **Maps.** A key that is a link takes a map with the keys of that section, exactly one of those under "One of":
  `optimizer: {sgd: {momentum: 0.9}}`. Any other value is short for a map; so is the bare name if every setting has a
  default: `optimizer: sgd`.
- **Values.** `[0, 1)` is a number from 0 to below 1. A *period* is `1 epoch` or `200 steps`; *bytes* are an integer or
  `512 MiB`; a *metric* is [one of these](losses-and-metrics.md#metrics), with several losses `NAME/METRIC`. An integral
  real number is an integer (`1e+06`); integers go up to 2^53 - 1.
- **Overrides.** `lockstep train job.yaml batch_size=256 model.layers[2].conv.filters=64` sets values by path, without
  the leading `job.`. Setting one of two alternatives replaces the other.
- **Paths** are relative to the job file's folder if they exist there, else to the working directory; those of
  overrides to the working directory. Data paths may be globs.
- **Text.** Quote what looks like a number or `true`, and what Helm or YAML 1.1 reads differently: `yes`, `No`, `TRUE`,
  `010`, `0x1f`, `1_000`, `12:30`, `2024-01-01`, as a value or a key. Unquoted, these are refused in files and text on
  the command line.
- **YAML.** One document, no tags, no duplicate keys. Anchors and aliases work; merge keys (`<<`) do not.
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
  page.section("job", job_section(catalogue).rule->schema());
  page.section("sweep", sweep_section(catalogue).rule->schema());
  std::string text = kHead + page.take();
  while (text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace lockstep::config
