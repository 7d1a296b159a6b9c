// YamlNode: a YAML value with its place. A job is read from a tree of these, into which the command line's overrides
// have been written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::config {

struct Mark {
  int line = 0;  ///< from 1
  int column = 0;
  bool command_line = false;
};

struct Entry;

struct YamlNode {
  enum class Kind { nothing, scalar, sequence, mapping };
  Kind kind = Kind::nothing;
  Mark mark;
  std::string text;     ///< scalar
  bool quoted = false;  ///< scalar: quoted or a block, so text whatever it looks like
  std::vector<YamlNode> items;
  std::vector<Entry> entries;

  const Entry* find(std::string_view key) const;
  [[nodiscard]] Entry* find(std::string_view key);
  bool is(Kind other) const { return kind == other; }
};

struct Entry {
  std::string key;
  Mark mark;  ///< of the key
  YamlNode value;
  bool quoted = false;  ///< the key
};

/// The type of a plain scalar by the rules of YAML 1.2 (numbers, true, false); `yes` is therefore text.
enum class ScalarType { nothing, boolean, number, text };
[[nodiscard]] ScalarType scalar_type(const YamlNode& scalar);
/// The value of a scalar of type number: may be infinite (1e999) or NaN (.nan).
[[nodiscard]] double number_of(const YamlNode& scalar);

/// For messages: "a map", "a list", "nothing", "'text'", "1.5".
[[nodiscard]] std::string describe(const YamlNode& node);

}  // namespace lockstep::config
