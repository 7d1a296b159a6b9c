// An object of a tokenizer.json, of which each entry must be asked for: what nobody knows is refused by name, since a
// tokenizer that is read in part gives other tokens in silence.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/error.hpp"

namespace lockstep::data {

/// An object's entries in their order, added without a look for the same key: vocabularies have 200,000 and more.
template <class Key, class T, class IgnoredLess = std::less<Key>,
          class Allocator = std::allocator<std::pair<const Key, T>>>
struct UnsearchedMap : nlohmann::ordered_map<Key, T, IgnoredLess, Allocator> {
  using Base = nlohmann::ordered_map<Key, T, IgnoredLess, Allocator>;
  using Base::Base;
  std::pair<typename Base::iterator, bool> emplace(const Key& key, T&& value) {
    this->emplace_back(key, std::move(value));
    return {std::prev(this->end()), true};
  }
  T& operator[](const Key& key) { return emplace(key, T{}).first->second; }
  using Base::operator[];
};

class CheckedObject {
 public:
  using Json = nlohmann::basic_json<UnsearchedMap>;

  CheckedObject(const Json& json, std::string place) : json_(json), place_(std::move(place)) {
    if (!json.is_object()) wrong("", "an object", json);
  }

  const std::string& place() const { return place_; }
  std::string place_of(const std::string& key) const { return place_ + "." + key; }

  /// The entry, or null.
  const Json& optional(const std::string& key) {
    static const Json kNull;
    known_.insert(key);
    const auto found = json_.find(key);
    return found == json_.end() ? kNull : *found;
  }
  template <class T>
  T get(const std::string& key, const char* expected) {
    const Json& found = optional(key);
    try {
      return found.get<T>();
    } catch (const Json::exception&) {
      wrong(key, expected, found);
    }
  }
  template <class T>
  T get(const std::string& key, const char* expected, T absent) {
    return optional(key).is_null() ? absent : get<T>(key, expected);
  }
  CheckedObject object(const std::string& key) { return {optional(key), place_of(key)}; }
  /// The entry must be this, or absent where `absent` is it, too.
  void require(const std::string& key, const Json& value) {
    const Json& found = optional(key);
    const bool absent = found.is_null() && (value.is_null() || value == Json(false) || value == Json(""));
    if (found != value && !absent) wrong(key, value.dump(), found);
  }
  /// Of an entry that changes nothing here.
  void ignore(const std::string& key) { known_.insert(key); }
  void ignore_all() {
    for (const auto& [key, value] : json_.items()) known_.insert(key);
  }
  /// Call when all has been asked for: appends what has not.
  void list_unknown(std::vector<std::string>& unknown) const {
    for (const auto& [key, value] : json_.items()) {
      if (!known_.contains(key)) unknown.push_back(place_of(key));
    }
  }
  /// The same, as an error.
  void done() const {
    for (const auto& [key, value] : json_.items()) {
      if (known_.contains(key)) continue;
      throw Error(ExitCode::data,
                  fmt::format("{}.{}: this entry is not known, so the tokens could be others than meant", place_, key));
    }
  }

  [[noreturn]] void wrong(const std::string& key, const std::string& expected, const Json& found) const {
    std::string text = found.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (text.size() > 60) text = text.substr(0, 57) + "...";
    throw Error(ExitCode::data, fmt::format("{}: expected {}, found {}", key.empty() ? place_ : place_of(key), expected,
                                            found.is_null() ? "nothing" : text));
  }

 private:
  const Json& json_;
  std::string place_;
  std::set<std::string> known_;
};

}  // namespace lockstep::data
