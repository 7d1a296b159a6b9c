#include "observe/rank_context.hpp"

namespace lockstep::observe {

void RankContext::emit(const std::string& name, const telemetry::Record& record) const {
  if (leads() && sink != nullptr) sink->event(name, record);
}

}  // namespace lockstep::observe
