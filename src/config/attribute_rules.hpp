// Rules for what the catalogue declares: the settings of ops, zoo models, losses, optimizers and augmentations.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/section.hpp"

namespace lockstep::config {

/// Reads and writes the attribute named by `spec`.
[[nodiscard]] Is<Attributes> attribute(const AttributeSpec& spec);

/// Sets the attributes that are not given to their declared defaults.
void set_defaults(const NamedAttributes& declared, Attributes& attributes);

/// The settings of one catalogue entry, as a section over the struct that holds its attributes.
template <class T>
[[nodiscard]] Section<T> attributes_section(const NamedAttributes& declared, Attributes T::*attributes);

/// Adds the entries as alternatives, of which a map holds exactly one: each name with its settings.
template <class T>
void add_options(Section<T>& section, const std::vector<NamedAttributes>& entries, std::string T::*kind,
                 Attributes T::*attributes);

}  // namespace lockstep::config

#include "config/list_rules.hpp"

namespace lockstep::config {

template <class T>
Section<T> attributes_section(const NamedAttributes& declared, Attributes T::*attributes) {
  Section<T> section;
  section.initially([declared, attributes](T& whole) {
    whole.*attributes = {};
    set_defaults(declared, whole.*attributes);
  });
  for (const auto& spec : declared.attributes) {
    section.part(spec.name, member_of(attributes, attribute(spec)), spec.doc);
    if (!spec.default_value && !spec.optional) section.required();
  }
  if (!declared.shorthand.empty()) section.shorthand(declared.shorthand);
  for (const auto& check : declared.checks) {
    section.check(check.attributes, [check, attributes](const T& whole, const Scope& scope) {
      const std::string problem = check.problem(whole.*attributes);
      if (!problem.empty()) scope.problem(check.attributes.front(), problem);
    });
  }
  return section;
}

template <class T>
void add_options(Section<T>& section, const std::vector<NamedAttributes>& entries, std::string T::*kind,
                 Attributes T::*attributes) {
  for (const auto& entry : entries) section.option(entry.name, kind, attributes_section(entry, attributes), entry.doc);
}

}  // namespace lockstep::config
