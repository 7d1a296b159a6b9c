// Rules built from other rules: lists, maps of numbers, optional values.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/rule.hpp"

namespace lockstep::config {

struct ListOptions {
  std::size_t least = 1;  ///< number of items
  bool single = false;    ///< one value may be written without brackets
  bool unique = false;    ///< no item may occur twice
};

/// A list whose items follow one rule; type-erased, so that this code is compiled once.
class ListRule : public Rule {
 public:
  struct Access {
    std::function<void(void*)> clear;
    std::function<void*(void*)> append;
    std::function<std::size_t(const void*)> size;
    std::function<const void*(const void*, std::size_t)> at;
  };
  ListRule(RulePtr item, Access access, ListOptions options)
      : item_(std::move(item)), access_(std::move(access)), options_(options) {}

  void read(const Cursor& at, void* into) const override;
  Json write(const void* value) const override;
  Json schema() const override;
  std::string expected() const override;
  const Rule* child(const std::string& key) const override;

 private:
  void check_unique(const Cursor& at, const void* list) const;
  RulePtr item_;
  Access access_;
  ListOptions options_;
};

template <class T>
[[nodiscard]] Is<std::vector<T>> list_of(Is<T> item, ListOptions options = {}) {
  using List = std::vector<T>;
  return {std::make_shared<ListRule>(
      item.rule,
      ListRule::Access{
          .clear = [](void* list) { static_cast<List*>(list)->clear(); },
          .append = [](void* list) -> void* { return &static_cast<List*>(list)->emplace_back(); },
          .size = [](const void* list) { return static_cast<const List*>(list)->size(); },
          .at = [](const void* list, std::size_t i) -> const void* { return &static_cast<const List*>(list)->at(i); }},
      options)};
}

/// Any names, with values that follow one rule: {A100: 2, T4: 1}. An empty one is not written.
class MapRule : public Rule {
 public:
  struct Access {
    std::function<void*(void*, const std::string& name)> at;
    std::function<void(const void*, const std::function<void(const std::string&, const void*)>&)> each;
  };
  MapRule(RulePtr item, Access access, std::string what)
      : item_(std::move(item)), access_(std::move(access)), what_(std::move(what)) {}

  void read(const Cursor& at, void* into) const override;
  Json write(const void* value) const override;
  Json schema() const override;
  std::string expected() const override { return "a map of " + what_; }

 private:
  RulePtr item_;
  Access access_;
  std::string what_;
};

/// `what`: for messages, "names and numbers".
template <class T>
[[nodiscard]] Is<std::map<std::string, T>> map_of(Is<T> item, std::string what) {
  using Map = std::map<std::string, T>;
  return {std::make_shared<MapRule>(
      item.rule,
      MapRule::Access{
          .at = [](void* map, const std::string& name) -> void* { return &(*static_cast<Map*>(map))[name]; },
          .each =
              [](const void* map, const auto& take) {
                for (const auto& [name, value] : *static_cast<const Map*>(map)) take(name, &value);
              }},
      std::move(what))};
}

/// Forwards to another rule, whose object it may first have to find or create.
class ForwardRule : public Rule {
 public:
  ForwardRule(RulePtr inner, std::function<void*(void*)> make, std::function<const void*(const void*)> find)
      : inner_(std::move(inner)), make_(std::move(make)), find_(std::move(find)) {}
  void read(const Cursor& at, void* into) const override { inner_->read(at, make_(into)); }
  Json write(const void* value) const override;
  Json schema() const override;
  std::string expected() const override { return inner_->expected(); }
  bool complete() const override { return inner_->complete(); }
  void initialize(void* into) const override { inner_->initialize(make_(into)); }
  const Rule* child(const std::string& key) const override { return inner_->child(key); }
  std::vector<std::string> keys() const override { return inner_->keys(); }
  void make_room(YamlNode& node, const std::string& key) const override { inner_->make_room(node, key); }

 private:
  RulePtr inner_;
  std::function<void*(void*)> make_;
  std::function<const void*(const void*)> find_;  // null: absent
};

template <class T>
[[nodiscard]] Is<std::optional<T>> optional_of(Is<T> inner) {
  using Maybe = std::optional<T>;
  return {std::make_shared<ForwardRule>(
      inner.rule,
      [](void* value) -> void* {
        auto& maybe = *static_cast<Maybe*>(value);
        if (!maybe) maybe.emplace();
        return &*maybe;
      },
      [](const void* value) -> const void* {
        const auto& maybe = *static_cast<const Maybe*>(value);
        return maybe ? &*maybe : nullptr;
      })};
}

/// The rule of a member, as a rule of the whole struct.
template <class T, class M>
[[nodiscard]] Is<T> member_of(M T::*member, std::type_identity_t<Is<M>> inner) {
  return {std::make_shared<ForwardRule>(
      inner.rule, [member](void* value) -> void* { return &(static_cast<T*>(value)->*member); },
      [member](const void* value) -> const void* { return &(static_cast<const T*>(value)->*member); })};
}

}  // namespace lockstep::config
