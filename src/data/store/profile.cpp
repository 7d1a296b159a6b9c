#include "data/store/profile.hpp"

#include <cstdlib>
#include <sstream>

#include "core/files.hpp"

namespace lockstep::store {

namespace {

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

/// Adds the settings of one section of an INI file, if there is one. Indented lines belong to a setting of another
/// service and are skipped.
void add_section(const std::string& path, const std::string& section, std::map<std::string, std::string>& settings) {
  std::istringstream lines(read_whole_file(path).value_or(""));
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    const bool indented = line.starts_with(' ') || line.starts_with('\t');
    line = trimmed(line);
    if (line.starts_with('[')) inside = trimmed(line.substr(1, line.find(']') - 1)) == section;
    const auto equals = line.find('=');
    if (!inside || indented || line.starts_with('#') || equals == std::string::npos) continue;
    settings[trimmed(line.substr(0, equals))] = trimmed(line.substr(equals + 1));
  }
}

/// The file that the variable names, or that one in ~/.aws.
std::string file(const char* name, const std::string& otherwise) {
  const std::string named = variable({name});
  return named.empty() ? variable({"HOME"}) + "/.aws/" + otherwise : named;
}

}  // namespace

std::string variable(std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return "";
}

std::map<std::string, std::string> profile() {
  const std::string chosen = variable({"AWS_PROFILE"}), name = chosen.empty() ? "default" : chosen;
  std::map<std::string, std::string> settings;
  add_section(file("AWS_CONFIG_FILE", "config"), name == "default" ? name : "profile " + name, settings);
  add_section(file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), name, settings);
  return settings;
}

}  // namespace lockstep::store
