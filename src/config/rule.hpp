// Rule: how one value of a job file is read, described and written. All that the program knows about the job file is
// one tree of rules (its root is in job_section.cpp); parsing, the JSON Schema, the canonical form and overrides all
// walk that tree, so they cannot disagree.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "config/cursor.hpp"

namespace lockstep::config {

using Json = nlohmann::ordered_json;

class Rule {
 public:
  virtual ~Rule() = default;

  /// Reads the value at `at` into `*into`, or reports what is wrong with it. Before the call `*into` holds the default.
  virtual void read(const Cursor& at, void* into) const = 0;
  /// The value as a job file would write it; null: nothing is written.
  virtual Json write(const void* value) const = 0;
  virtual Json schema() const = 0;
  /// For messages: "a number of at least 0".
  virtual std::string expected() const = 0;

  /// Whether a bare word may stand for the value: every setting inside has a default.
  virtual bool complete() const { return false; }
  /// Sets the defaults that are specific to this rule (weight decay: 0.01 for adamw, 0 for sgd).
  virtual void initialize(void* into) const { (void)into; }

  // Used by overrides, and to find where a misplaced key belongs.
  virtual const Rule* child(const std::string& key) const { return (void)key, nullptr; }
  virtual std::vector<std::string> keys() const { return {}; }
  /// Expands a short form (`optimizer: sgd`, `learning_rate: 0.1`) into the map in which `key` is about to be set, and
  /// removes the alternatives that `key` replaces.
  virtual void make_room(YamlNode& node, const std::string& key) const { (void)node, (void)key; }
};

using RulePtr = std::shared_ptr<const Rule>;

/// A rule for values of type `T`; a field of that type may be bound to it.
template <class T>
struct Is {
  RulePtr rule;
};

/// For parameters whose type is deduced from the member, so that builders convert to it.
template <class T>
using Like = std::type_identity_t<Is<T>>;

}  // namespace lockstep::config
