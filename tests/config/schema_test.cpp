// The schema's properties that need no validator: nothing unknown is allowed, everything is described, no reference
// leaves the file. schema_verdicts.py compares it with a validator.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "config/config.hpp"
#include "config/test_catalogue.hpp"

namespace lockstep::config {
namespace {

using nlohmann::json;

void check(const json& schema, const std::string& path) {
  if (schema.is_array()) {
    for (const auto& item : schema) check(item, path);
  }
  if (!schema.is_object()) return;
  EXPECT_FALSE(schema.contains("$ref")) << path;
  if (schema.contains("properties")) {
    EXPECT_EQ(schema.value("additionalProperties", true), false) << path;
    for (const auto& [key, value] : schema["properties"].items()) {
      EXPECT_FALSE(value.value("description", "").empty()) << path << "." << key;
      check(value, path + "." + key);
    }
  }
  for (const auto* several : {"oneOf", "anyOf", "items"}) {
    if (schema.contains(several)) check(schema[several], path);
  }
}

TEST(Schema, IsClosedAndDescribed) {
  for (const bool plugins_known : {true, false}) {
    const json root = json::parse(schema(test_catalogue(), plugins_known));
    EXPECT_EQ(root["$schema"], "http://json-schema.org/draft-07/schema#");
    check(root, "");
  }
}

TEST(Schema, InAJobWithPluginsWhatTheyAddToIsOpen) {
  const json strict = json::parse(schema(test_catalogue(), true))["properties"]["job"]["properties"];
  const json job = json::parse(schema(test_catalogue()))["properties"]["job"];
  EXPECT_EQ(job["if"], json::parse(R"({"required": ["plugins"]})"));
  const json& without = job["else"]["properties"];
  EXPECT_TRUE(without.contains("model") && without.contains("data") && without.contains("metrics"));
  for (const auto& [key, value] : strict.items()) {
    if (without.contains(key)) {
      EXPECT_EQ(without[key], value) << key;
      EXPECT_EQ(job["properties"][key], json({{"description", value["description"]}})) << key;
    } else {
      EXPECT_EQ(job["properties"][key], value) << key;
    }
  }
}

TEST(Schema, SaysRangesDefaultsAndChoices) {
  const json job = json::parse(schema(test_catalogue(), true))["properties"]["job"]["properties"];
  EXPECT_EQ(job["seed"]["maximum"], 9007199254740991);
  EXPECT_EQ(job["seed"]["default"], 1);
  EXPECT_EQ(job["batch_size"]["default"], 64);
  EXPECT_EQ(job["exact"]["enum"], json::array({"required", "preferred", "never"}));
  EXPECT_EQ(job["optimizer"]["oneOf"][0]["enum"], json::array({"sgd", "adam", "adamw", "lamb", "own"}));
  const json adamw = job["optimizer"]["oneOf"][1]["properties"]["adamw"]["properties"];
  EXPECT_EQ(adamw["weight_decay"]["default"], 0.01);
  EXPECT_EQ(adamw["beta1"]["exclusiveMaximum"], 1);
}

TEST(Reference, HasASectionForEachMap) {
  const std::string page = reference_markdown(test_catalogue());
  for (const auto* heading : {"\n## `job`\n", "\n## `job.optimizer.adamw`\n", "\n## `job.model.layers[].conv`\n"}) {
    EXPECT_NE(page.find(heading), std::string::npos) << heading;
  }
  for (const auto* row :
       {"|`batch_size`|integer ≥ 1|`64`|", "|`steps`|integer ≥ 1|length of", "|[`optimizer`](#joboptimizer)|name|"})
    EXPECT_NE(page.find(row), std::string::npos) << row;
}

TEST(Reference, ShowsEachTableOnce) {
  const std::string page = reference_markdown(test_catalogue());
  EXPECT_NE(page.find("\n## `job.data.train.images`\n"), std::string::npos);
  EXPECT_EQ(page.find("\n## `job.data.test.images`\n"), std::string::npos);
  EXPECT_NE(
      page.find(
          "`count`, `bad_samples`, `classes`, `weights`: as in [`job.data.train.images`](#jobdatatrainimages).\n"),
      std::string::npos);
}

}  // namespace
}  // namespace lockstep::config
