#include "config/yaml_reader.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "config/yaml_dialects.hpp"

namespace lockstep::config {
namespace {

constexpr std::size_t kMaxNodes = 100'000;  // nested aliases can grow exponentially

Mark mark_of(const YAML::Mark& mark) {
  return {mark.line + 1, mark.column + 1, false};
}

std::size_t count(const YamlNode& node) {
  std::size_t sum = 1;
  for (const auto& item : node.items) sum += count(item);
  for (const auto& entry : node.entries) sum += count(entry.value);
  return sum;
}

/// Builds the tree from yaml-cpp's events, which, unlike its nodes, still have duplicate keys and tags.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(Session& session) : session_(session) {}
  [[nodiscard]] YamlNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(scalar(mark, "", YamlNode::Kind::nothing), anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_tag(mark, tag);
    if (!is_utf8(value)) problem(mark_of(mark), kNoUtf8);
    YamlNode node = scalar(mark, value, YamlNode::Kind::scalar);
    node.quoted = tag == "!";
    add(std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      problem(mark_of(mark), "expected a value, found an alias of the value that it stands in; write the value out");
      return add(scalar(mark, "", YamlNode::Kind::nothing), 0);
    }
    nodes_ += count(found->second);
    if (nodes_ > kMaxNodes) throw YAML::ParserException(mark, "too many values: aliases of aliases");
    add(found->second, 0);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::sequence);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::mapping);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    YamlNode node;
    YAML::anchor_t anchor = 0;
    bool has_key = false;
    bool ignore_value = false;  ///< the value belongs to a key that was refused
    std::string key;
    bool key_quoted = false;
    Mark key_mark;
  };

  static YamlNode scalar(const YAML::Mark& mark, std::string text, YamlNode::Kind kind) {
    YamlNode node;
    node.kind = kind;
    node.mark = mark_of(mark);
    node.text = std::move(text);
    return node;
  }

  void problem(const Mark& mark, std::string message) { session_.problem(mark, path(), std::move(message)); }

  std::string path() const {
    std::string text;
    for (const auto& frame : frames_) {
      if (frame.node.is(YamlNode::Kind::sequence)) text += fmt::format("[{}]", frame.node.items.size());
      if (frame.has_key) text += (text.empty() ? "" : ".") + frame.key;
    }
    return text;
  }

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    problem(mark_of(mark), fmt::format("expected a plain value, found the tag '{}'; leave the tag out", tag));
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlNode::Kind kind) {
    refuse_tag(mark, tag);
    Frame frame;
    frame.node = scalar(mark, "", kind);
    frame.anchor = anchor;
    frames_.push_back(std::move(frame));
  }

  void close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    add(std::move(frame.node), frame.anchor);
  }

  void add(YamlNode node, YAML::anchor_t anchor) {
    ++nodes_;
    if (anchor != 0) anchors_[anchor] = node;
    if (frames_.empty()) {
      root_ = std::move(node);
    } else if (Frame& frame = frames_.back(); frame.node.is(YamlNode::Kind::sequence)) {
      frame.node.items.push_back(std::move(node));
    } else if (!frame.has_key) {
      take_key(frame, node);
    } else {
      if (!frame.ignore_value) {
        frame.node.entries.push_back({frame.key, frame.key_mark, std::move(node), frame.key_quoted});
      }
      frame.has_key = false;
    }
  }

  void take_key(Frame& frame, const YamlNode& node) {
    frame.ignore_value = true;
    if (!node.is(YamlNode::Kind::scalar)) {
      problem(node.mark, fmt::format("expected a key, found {}", describe(node)));
    } else if (const Entry* first = frame.node.find(node.text)) {
      frame.has_key = true;
      frame.key = node.text;
      problem(node.mark,
              fmt::format("expected each key once, found it again; the first stands in line {}", first->mark.line));
    } else {
      frame.ignore_value = false;
    }
    frame.has_key = true;
    frame.key = node.text;
    frame.key_quoted = node.quoted;
    frame.key_mark = node.mark;
  }

  Session& session_;
  YamlNode root_;
  std::vector<Frame> frames_;
  std::map<YAML::anchor_t, YamlNode> anchors_;
  std::size_t nodes_ = 0;
};

/// Whether a line is indented with a tab, the mistake for which yaml-cpp's message is least helpful.
bool is_tabbed(const std::string& text, int line) {
  std::istringstream lines(text);
  std::string found;
  for (int i = 0; i < line && std::getline(lines, found); ++i) continue;
  const std::size_t start = found.find_first_not_of(' ');
  return start < found.size() && found[start] == '\t';
}

void mark_command_line(YamlNode& node) {
  node.mark.command_line = true;
  if (node.is(YamlNode::Kind::scalar) && other_reading(node.text)) node.quoted = true;
  for (auto& item : node.items) mark_command_line(item);
  for (auto& entry : node.entries) {
    entry.mark.command_line = true;
    mark_command_line(entry.value);
  }
}

}  // namespace

bool is_utf8(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

YamlNode parse_yaml(const std::string& text, Session& session) {
  TreeBuilder builder(session);
  std::istringstream stream(text);
  try {
    YAML::Parser parser(stream);
    (void)parser.HandleNextDocument(builder);
    YamlNode root = builder.take();
    TreeBuilder second(session);
    if (parser && parser.HandleNextDocument(second)) {
      session.problem(second.take().mark, "", "expected one YAML document, found a second one; remove the line '---'");
    }
    return root;
  } catch (const YAML::Exception& error) {
    const Mark mark = error.mark.is_null() ? Mark{1, 1, false} : mark_of(error.mark);
    session.problem(mark, "",
                    fmt::format("expected YAML, found a mistake in its syntax: {}{}", error.msg,
                                is_tabbed(text, mark.line) ? "; indent with spaces, not with tabs" : ""));
    session.broken = true;
    return {};
  }
}

YamlNode parse_override(const std::string& text, const std::string& option, Session& session) {
  Session own;
  YamlNode node = parse_yaml(text, own);
  mark_command_line(node);
  for (const auto& problem : own.problems) session.problem({0, 0, true}, option, problem.message);
  return node;
}

}  // namespace lockstep::config
