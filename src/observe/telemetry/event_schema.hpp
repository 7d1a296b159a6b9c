// Visits the fields of events by their schemas (lockstep/events.hpp).
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "lockstep/events.hpp"

namespace lockstep::telemetry {

/// Calls visit(name, value, unit) for each field of one kind of event, in order.
template <class Kind, class Visit>
void for_each_field(Kind& event, Visit&& visit) {
  std::remove_const_t<Kind>::describe(
      [&](const char* name, auto member, const char* /*doc*/, events::Unit unit = events::Unit::none) {
        visit(name, event.*member, unit);
      });
}

/// Calls visit(kind) with an empty event of each kind, in the order of their list.
template <class Visit>
void for_each_kind(Visit&& visit) {
  [&]<std::size_t... Index>(std::index_sequence<Index...>) {
    (visit(std::variant_alternative_t<Index, events::Event>{}), ...);
  }
  (std::make_index_sequence<std::variant_size_v<events::Event>>{});
}

}  // namespace lockstep::telemetry
