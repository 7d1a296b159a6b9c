// Helpers for events; the types are public (lockstep/events.hpp).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/events.hpp"

namespace lockstep::telemetry {

/// Tells each of `sinks`, in their order.
[[nodiscard]] std::unique_ptr<Sink> make_tee(std::vector<std::unique_ptr<Sink>> sinks);

/// The field of that name, or nullptr.
[[nodiscard]] const Field* find(const Record& record, const std::string& name);

/// A field as a number; `fallback` where it is absent or no number.
[[nodiscard]] double number(const Record& record, const std::string& name, double fallback = 0);

}  // namespace lockstep::telemetry
