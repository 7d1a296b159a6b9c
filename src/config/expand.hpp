// Globs of a job that was loaded without its data.
#pragma once

#include "lockstep/job.hpp"

namespace lockstep::config {

/// The source with what its patterns match now; a pattern that matches nothing is left out.
[[nodiscard]] SourceOptions expanded(SourceOptions source);

}  // namespace lockstep::config
