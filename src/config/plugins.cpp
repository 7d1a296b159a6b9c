// plugins: shared libraries that add to the catalogue, so that they are read before the job itself.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "config/files.hpp"
#include "config/list_rules.hpp"
#include "config/overrides.hpp"
#include "config/scalar_rules.hpp"
#include "config/sections.hpp"
#include "config/yaml_reader.hpp"
#include "core/files.hpp"

namespace lockstep::config {
namespace {

/// That there is a plugin is checked where it is opened.
class PluginRule : public Rule {
 public:
  void read(const Cursor& at, void* into) const override {
    if (const auto found = read_text(at, expected())) *static_cast<std::string*>(into) = resolve(at, *found);
  }
  Json write(const void* value) const override { return *static_cast<const std::string*>(value); }
  Json schema() const override { return {{"type", "string"}, {"minLength", 1}}; }
  std::string expected() const override { return "the path of a shared library"; }
};

bool is_of_plugins(const std::string& option) {
  const auto parts = split_path(override_key(option.substr(0, option.find('='))));
  return !parts.empty() && parts.front() == "plugins";
}

/// `sweep.job`, where a sweep file has no job of its own; else empty.
std::string job_of_sweep(const YamlNode& root, Session& session) {
  const Entry* sweep = root.find("job") == nullptr ? root.find("sweep") : nullptr;
  const Entry* job = sweep == nullptr ? nullptr : sweep->value.find("job");
  if (job == nullptr || !job->value.is(YamlNode::Kind::scalar)) return "";
  return resolve(Cursor(job->value, "sweep.job", session), job->value.text);
}

}  // namespace

Is<std::vector<std::string>> plugins_rule() {
  const Is<std::string> path{std::make_shared<PluginRule>()};
  return list_of(path, {.least = 0, .single = true, .unique = true});
}

bool set_plugins(const std::vector<std::string>& overrides) {
  return std::any_of(overrides.begin(), overrides.end(), is_of_plugins);
}

std::vector<PluginPath> plugins_of_text(const std::string& text, const std::string& file_name,
                                        const std::vector<std::string>& overrides) {
  Session session;
  session.file = file_name;
  session.folder = std::filesystem::path(file_name).parent_path().string();
  YamlNode root = parse_yaml(text, session);
  if (session.broken) return {};
  if (const std::string other = job_of_sweep(root, session); !other.empty()) return plugins_of(other, overrides);
  session.problems.clear();

  std::vector<std::string> own;
  std::copy_if(overrides.begin(), overrides.end(), std::back_inserter(own), is_of_plugins);
  const Is<Job> section = Section<Job>().field("plugins", &Job::plugins, plugins_rule(), "");
  Entry* found = root.find("job");
  YamlNode job = found == nullptr ? YamlNode{} : std::move(found->value);
  apply_overrides(job, *section.rule, own, session);
  Job read;
  std::vector<PluginPath> plugins;
  if (const Entry* entry = job.find("plugins"); entry != nullptr) {
    const Cursor at(entry->value, "job.plugins", session);
    plugins_rule().rule->read(at, &read.plugins);
    const bool list = entry->value.is(YamlNode::Kind::sequence);
    for (std::size_t i = 0; i < read.plugins.size(); ++i) {
      plugins.push_back({read.plugins[i], list ? at.item(i).place() : at.place()});
    }
  }
  if (!session.problems.empty()) throw Problems(session.problems);
  return plugins;
}

std::vector<PluginPath> plugins_of(const std::string& path, const std::vector<std::string>& overrides) {
  const auto text = std::filesystem::is_directory(path) ? std::nullopt : read_whole_file(path);
  return text ? plugins_of_text(*text, path, overrides) : std::vector<PluginPath>();
}

}  // namespace lockstep::config
