// Rule: how one value of a job file is read, described and written. All that the program knows about the job
// file is one tree of rules (job_section.cpp is its root); parsing, the JSON Schema, the canonical form and
// overrides are walks over it, so they cannot disagree.
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

  /// Reads the value at `at` into `*into`, or reports what is wrong with it. `into` holds the default before.
  virtual void read(const Cursor& at, void* into) const = 0;
  /// The value in the job file's own words; null: nothing is written.
  [[nodiscard]] virtual Json write(const void* value) const = 0;
  [[nodiscard]] virtual Json schema() const = 0;
  /// For messages: "a number of at least 0".
  [[nodiscard]] virtual std::string expected() const = 0;

  /// Whether a bare word may stand for it: every setting inside has a default.
  [[nodiscard]] virtual bool complete() const { return false; }
  /// Sets the defaults that belong to this rule (adamw decays by 0.01, sgd by 0).
  virtual void initialize(void* into) const { (void)into; }

  // For overrides and for finding where a misplaced key belongs.
  [[nodiscard]] virtual const Rule* child(const std::string& key) const { return (void)key, nullptr; }
  [[nodiscard]] virtual std::vector<std::string> keys() const { return {}; }
  /// Turns a short form (`optimizer: sgd`, `learning_rate: 0.1`) into the map that `key` is about to be set in,
  /// and removes the alternatives that `key` replaces.
  virtual void make_room(YamlNode& node, const std::string& key) const { (void)node, (void)key; }
};

using RulePtr = std::shared_ptr<const Rule>;

/// A rule whose values are `T`: what a section's field of that type may be bound to.
template <class T>
struct Is {
  RulePtr rule;
};

/// For parameters whose type shall come from the member, so that builders convert to it.
template <class T>
using Like = std::type_identity_t<Is<T>>;

}  // namespace lockstep::config
