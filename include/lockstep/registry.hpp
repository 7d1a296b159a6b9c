// Registry: the things that a job file can refer to by name: the built-in ones and those of the embedding program.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lockstep/error.hpp"

namespace lockstep {

/// `what`: "optimizer 'mine'"; `missing`: a member that an entry lacks, or "". Throws Error(usage) if it lacks one.
void require_whole(const std::string& what, const char* missing);

/// `Def` has a `name`, an `order`, a `kNoun` for messages, and missing(): the member that it lacks, or "". Addresses
/// are stable.
template <class Def>
class Registry {
 public:
  /// Throws Error(usage) if the name is taken, or if the entry lacks what it cannot do without.
  Def& add(Def def) {
    require_whole(std::string(Def::kNoun) + " '" + def.name + "'", def.missing());
    if (find(def.name) != nullptr) {
      throw Error(ExitCode::usage, std::string("the ") + Def::kNoun + " '" + def.name + "' is registered twice");
    }
    const auto next = std::find_if(defs_.begin(), defs_.end(), [&](const auto& other) {
      return std::tie(def.order, def.name) < std::tie(other->order, other->name);
    });
    return **defs_.insert(next, std::make_unique<Def>(std::move(def)));
  }

  const Def* find(const std::string& name) const {
    const auto found = std::find_if(defs_.begin(), defs_.end(), [&](const auto& def) { return def->name == name; });
    return found == defs_.end() ? nullptr : found->get();
  }

  /// If there is none, throws Error(configuration) that lists the known names.
  const Def& at(const std::string& name) const {
    if (const Def* def = find(name)) return *def;
    std::string known;
    for (const auto& def : defs_) known += (known.empty() ? "" : ", ") + def->name;
    throw Error(ExitCode::configuration,
                std::string("expected one of the ") + Def::kNoun + "s " + known + ", found '" + name + "'");
  }

  /// By `order`, then by name.
  std::vector<const Def*> all() const {
    std::vector<const Def*> all;
    for (const auto& def : defs_) all.push_back(def.get());
    return all;
  }

 private:
  std::vector<std::unique_ptr<Def>> defs_;
};

}  // namespace lockstep
