// CudnnPlans: the existing cuDNN plans for one GPU, by what they compute. All its streams share them: a net has many
// layers of the same size, each worker has a kernel for each of them, and some plans take half a second to compile.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace lockstep::device {

class CudnnPlan;

class CudnnPlans {
 public:
  using Plan = std::shared_ptr<const CudnnPlan>;  ///< null: there is no plan

  /// Returns the result of the first call's `make`. One plan is made at a time; other callers wait.
  [[nodiscard]] Plan find_or_make(const std::string& operations, const std::function<Plan()>& make) {
    const std::lock_guard lock(mutex_);
    if (const auto found = made_.find(operations); found != made_.end()) return found->second;
    return made_.emplace(operations, make()).first->second;
  }
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return made_.size();
  }

 private:
  mutable std::mutex mutex_;  ///< guards what follows
  std::map<std::string, Plan> made_;
};

}  // namespace lockstep::device
