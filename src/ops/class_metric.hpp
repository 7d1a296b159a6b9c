// Metrics that ask whether the target is among a row's k best classes: accuracy (k = 1), top5. Of equal scores
// the class with the lower index is the better one; a NaN beats the target.
#pragma once

#include <memory>
#include <string>

#include "lockstep/op.hpp"

namespace lockstep::ops {

[[nodiscard]] OpDef class_metric(const std::string& name, const std::string& doc, KernelFactory kernel);
[[nodiscard]] std::unique_ptr<Kernel> make_class_metric_cpu(const KernelRequest& request, std::int64_t best);

}  // namespace lockstep::ops
