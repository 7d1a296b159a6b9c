// Globs of a job that was loaded without its data.
#pragma once

#include "lockstep/job.hpp"

namespace lockstep::config {

/// The source with what its patterns match now; a pattern that matches nothing is skipped.
[[nodiscard]] SourceOptions expanded(SourceOptions source);

}  // namespace lockstep::config
