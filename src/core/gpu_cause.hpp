// Why a rank's GPU does less than it could: what telemetry sees and balance writes beside its decisions.
#pragma once

namespace lockstep {

enum class GpuCause { none, co_tenant, throttled };

}  // namespace lockstep
