#include "telemetry/gpu_energy.hpp"

namespace lockstep::telemetry {

namespace {

constexpr double kShortestLook = 1;  // seconds
constexpr double kJoulesPerCount = 1e-3;

}  // namespace

std::unique_ptr<GpuEnergy> GpuEnergy::open(std::shared_ptr<const nvml::Library> library, const std::string& device) {
  std::string ignored;
  nvml::Device gpu = nvml::find_gpu(*library, device, ignored);
  const nvml::Functions& nvml = library->functions();
  unsigned long long counter = 0;  // NOLINT(google-runtime-int): NVML's type
  if (gpu == nullptr || nvml.energy == nullptr || nvml.energy(gpu, &counter) != nvml::success) return nullptr;
  return std::unique_ptr<GpuEnergy>(new GpuEnergy(std::move(library), gpu, counter));
}

double GpuEnergy::joules() {
  if (seconds_since(looked_) < kShortestLook) return joules_;
  looked_ = Clock::now();
  unsigned long long counter = 0;  // NOLINT(google-runtime-int): NVML's type
  if (library_->functions().energy(device_, &counter) != nvml::success) return joules_;
  if (counter > counter_) joules_ += static_cast<double>(counter - counter_) * kJoulesPerCount;
  counter_ = counter;
  return joules_;
}

}  // namespace lockstep::telemetry
