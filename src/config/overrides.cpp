#include "config/overrides.hpp"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <utility>

#include "config/yaml_reader.hpp"

namespace lockstep::config {
namespace {

constexpr Mark kCommandLine{0, 0, true};

/// Applies one override, walking down the tree.
class Setter {
 public:
  Setter(std::vector<std::string> parts, std::string option, Session& session)
      : parts_(std::move(parts)), option_(std::move(option)), session_(session) {}

  void set(YamlNode& node, const Rule* rule, YamlNode value, std::size_t at = 0) {
    if (at == parts_.size()) {
      node = std::move(value);
    } else if (parts_[at].front() == '[') {
      set_item(node, rule, std::move(value), at);
    } else {
      set_key(node, rule, std::move(value), at);
    }
  }

 private:
  void set_key(YamlNode& node, const Rule* rule, YamlNode value, std::size_t at) {
    const std::string& key = parts_[at];
    if (rule != nullptr) rule->make_room(node, key);
    if (!node.is(YamlNode::Kind::mapping)) {
      node = YamlNode{};
      node.kind = YamlNode::Kind::mapping;
      node.mark = kCommandLine;
    }
    Entry* entry = node.find(key);
    if (entry == nullptr) {
      entry = &node.entries.emplace_back(Entry{key, kCommandLine, YamlNode{}});
      entry->value.mark = kCommandLine;
    }
    entry->mark = kCommandLine;
    set(entry->value, rule == nullptr ? nullptr : rule->child(key), std::move(value), at + 1);
  }

  void set_item(YamlNode& node, const Rule* rule, YamlNode value, std::size_t at) {
    std::size_t index = 0;
    const std::string& part = parts_[at];
    std::from_chars(part.data() + 1, part.data() + part.size() - 1, index);
    if (!node.is(YamlNode::Kind::sequence)) {
      return session_.problem(kCommandLine, option_, fmt::format("expected a list to index, found {}", describe(node)));
    }
    if (index >= node.items.size()) {
      return session_.problem(
          kCommandLine, option_,
          node.items.empty() ? fmt::format("expected an item to replace, found an empty list")
                             : fmt::format("expected an index from 0 to {}, found {}", node.items.size() - 1, index));
    }
    set(node.items[index], rule == nullptr ? nullptr : rule->child(part), std::move(value), at + 1);
  }

  std::vector<std::string> parts_;
  std::string option_;
  Session& session_;
};

/// Whether all of these are keys that the job may have.
bool are_known_keys(const Rule* rule, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    rule = rule == nullptr || part.front() == '[' ? nullptr : rule->child(part);
  }
  return rule != nullptr;
}

void remove_key(YamlNode& job, const std::vector<std::string>& parts) {
  YamlNode* node = &job;
  for (std::size_t at = 0; at + 1 < parts.size(); ++at) {
    Entry* const entry = node->find(parts[at]);
    if (entry == nullptr) return;
    node = &entry->value;
  }
  std::erase_if(node->entries, [&](const Entry& entry) { return entry.key == parts.back(); });
}

}  // namespace

std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> parts;
  std::string word;
  for (std::size_t i = 0; i <= path.size(); ++i) {
    const char c = i < path.size() ? path[i] : '.';
    if (c != '.' && c != '[') {
      word += c;
      continue;
    }
    const bool after_index = word.empty() && i > 0 && path[i - 1] == ']';
    if (word.empty() && !after_index) return {};
    if (!word.empty()) parts.push_back(std::exchange(word, ""));
    if (c == '.') continue;
    const auto close = path.find(']', i);
    if (close == std::string::npos || close == i + 1 || close > i + 9) return {};
    for (std::size_t d = i + 1; d < close; ++d) {
      if (std::isdigit(static_cast<unsigned char>(path[d])) == 0) return {};
    }
    if (close + 1 < path.size() && path[close + 1] != '.' && path[close + 1] != '[') return {};
    parts.push_back(path.substr(i, close + 1 - i));
    i = close;
    if (i + 1 == path.size()) break;
  }
  return parts;
}

void apply_overrides(YamlNode& job, const Rule& rule, const std::vector<std::string>& overrides, Session& session) {
  for (const auto& option : overrides) {
    const auto equals = option.find('=');
    const std::string key = override_key(option.substr(0, equals));
    if (equals == std::string::npos) {
      session.problem(kCommandLine, option, fmt::format("expected key=value, found '{}'", option));
      continue;
    }
    if (!is_utf8(key)) {
      session.problem(kCommandLine, key, kNoUtf8);
      continue;
    }
    constexpr std::size_t kDeepest = 100;
    auto parts = split_path(key);
    if (parts.empty() || parts.size() > kDeepest) {
      session.problem(kCommandLine, key,
                      fmt::format("expected a path such as optimizer.sgd.momentum or "
                                  "model.layers[2], found '{}'",
                                  key));
      continue;
    }
    if (option.compare(equals + 1, std::string::npos, "null") == 0 && are_known_keys(&rule, parts)) {
      remove_key(job, parts);
      continue;
    }
    const std::size_t before = session.problems.size();
    YamlNode value = parse_override(option.substr(equals + 1), key, session);
    if (session.problems.size() > before) continue;
    Setter(std::move(parts), key, session).set(job, &rule, std::move(value));
  }
}

}  // namespace lockstep::config
