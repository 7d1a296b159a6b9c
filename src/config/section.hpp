// Section: a map in the job file bound to a struct.
//
//   Section<EarlyStopOptions>()
//       .field("patience", &EarlyStopOptions::patience, number().at_least(1), "evaluations without a better value")
//
// A section may also have alternatives, of which a map holds exactly one (`{sgd: {...}}`); words that stand for a whole
// section (`never`); and a shorthand, the field that any other bare value sets (`learning_rate: 0.1`). An alternative
// whose settings all have defaults may be written as a bare word (`optimizer: sgd`).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/rule.hpp"

namespace lockstep::config {

/// The interface of a check across fields: what it may ask and report.
class Scope {
 public:
  Scope(const Cursor& at) : at_(at) {}  // NOLINT
  bool written(const std::string& key) const { return at_.node().find(key) != nullptr; }
  /// Reports at the value of a key ("data.validation"), or at the enclosing section if the key is not written.
  void problem(const std::string& key, std::string message) const;
  const Cursor& cursor() const { return at_; }

 private:
  const Cursor& at_;
};

class SectionRule : public Rule {
 public:
  struct Field {
    std::string name;
    RulePtr rule;
    std::string doc;
    std::function<void*(void*)> member;
    bool required = false;
    bool alternative = false;
    std::function<void(void*)> choose = {};        ///< alternatives: called before the value is read
    std::function<bool(const void*)> chosen = {};  ///< whether the field is written; empty: always
  };
  struct Word {
    std::string name;
    std::function<void(void*)> apply;
    std::function<bool(const void*)> holds;
  };
  struct Check {
    std::vector<std::string> keys;  ///< the check is not run if one of these has a problem of its own
    std::function<void(const void*, const Scope&)> run;
  };

  void read(const Cursor& at, void* into) const override;
  Json write(const void* value) const override;
  Json schema() const override;
  std::string expected() const override;
  bool complete() const override;
  void initialize(void* into) const override;
  const Rule* child(const std::string& key) const override;
  std::vector<std::string> keys() const override;
  void make_room(YamlNode& node, const std::string& key) const override;

  std::vector<Field> fields;
  std::vector<Word> words;
  std::vector<Check> checks;
  std::string shorthand, noun;
  bool alternative_required = true;
  std::function<void(void*)> initially;
  std::function<std::shared_ptr<void>()> make;  ///< makes a default object, for the schema's defaults
  std::function<void(void*, const Place&)> set_place;

 private:
  const Field* find(const std::string& name) const;
  std::vector<std::string> alternatives() const;
  std::vector<std::string> bare_words() const;
  Json map_schema() const;
  void read_map(const Cursor& at, void* into) const;
  void read_bare(const Cursor& at, void* into) const;
  bool read_word(const Cursor& at, void* into) const;
  void report_unknown(const Cursor& at, const Entry& entry) const;
  bool is_misspelt(const Cursor& at, const std::vector<std::string>& names) const;
  void report_missing(const Cursor& at) const;
  void run_checks(const Cursor& at, const void* value, const std::vector<std::string>& bad) const;
};

template <class T>
class Section {
 public:
  Section() {
    rule_->make = [] { return std::static_pointer_cast<void>(std::make_shared<T>()); };
  }

  template <class M>
  Section& field(const std::string& name, M T::*member, Like<M> rule, const std::string& doc) {
    return add({.name = name, .rule = rule.rule, .doc = doc, .member = [member](void* whole) -> void* {
                  return &(static_cast<T*>(whole)->*member);
                }});
  }
  /// A key whose rule gets the whole struct, since it sets several members.
  Section& part(const std::string& name, Is<T> rule, const std::string& doc) {
    return add({.name = name, .rule = rule.rule, .doc = doc, .member = [](void* whole) { return whole; }});
  }
  /// An alternative that is chosen by setting `member` to `value`.
  template <class V>
  Section& option(const std::type_identity_t<V>& value, V T::*member, Is<T> rule, const std::string& doc) {
    return part(key_of(value), rule, doc).alternative(value, member);
  }
  /// Turns the last field into one of the alternatives.
  Section& alternative(std::function<void(T&)> choose, std::function<bool(const T&)> chosen) {
    last().alternative = true;
    last().choose = [choose](void* whole) { choose(*static_cast<T*>(whole)); };
    return written_if(std::move(chosen));
  }
  template <class V>
  Section& alternative(const std::type_identity_t<V>& value, V T::*member) {
    return alternative([value, member](T& whole) { whole.*member = value; },
                       [value, member](const T& whole) { return whole.*member == value; });
  }
  Section& alternatives_optional() { return rule_->alternative_required = false, *this; }
  Section& required() { return last().required = true, *this; }
  Section& written_if(std::function<bool(const T&)> chosen) {
    last().chosen = [chosen](const void* whole) { return chosen(*static_cast<const T*>(whole)); };
    return *this;
  }
  Section& word(const std::string& name, std::function<void(T&)> apply, std::function<bool(const T&)> holds) {
    rule_->words.push_back({name, [apply](void* whole) { apply(*static_cast<T*>(whole)); },
                            [holds](const void* whole) { return holds(*static_cast<const T*>(whole)); }});
    return *this;
  }
  template <NamedChoice V>
  Section& word(V value, V T::*member) {
    return word(
        key_of(value), [value, member](T& whole) { whole.*member = value; },
        [value, member](const T& whole) { return whole.*member == value; });
  }
  Section& shorthand(const std::string& field) { return rule_->shorthand = field, *this; }
  Section& called(const std::string& noun) { return rule_->noun = noun, *this; }
  Section& initially(std::function<void(T&)> set) {
    rule_->initially = [set](void* whole) { set(*static_cast<T*>(whole)); };
    return *this;
  }
  Section& placed(Place T::*place) {
    rule_->set_place = [place](void* whole, const Place& at) { static_cast<T*>(whole)->*place = at; };
    return *this;
  }
  /// `run` is called with the section after it is read, unless one of `keys` had a problem of its own.
  Section& check(std::vector<std::string> keys, std::function<void(const T&, const Scope&)> run) {
    rule_->checks.push_back(
        {std::move(keys), [run](const void* whole, const Scope& scope) { run(*static_cast<const T*>(whole), scope); }});
    return *this;
  }

  operator Is<T>() const { return {rule_}; }  // NOLINT

 private:
  static std::string key_of(const std::string& name) { return name; }
  static std::string key_of(NamedChoice auto value) { return std::string(name_of(value)); }
  Section& add(SectionRule::Field field) { return rule_->fields.push_back(std::move(field)), *this; }
  SectionRule::Field& last() { return rule_->fields.back(); }
  std::shared_ptr<SectionRule> rule_ = std::make_shared<SectionRule>();
};

}  // namespace lockstep::config
