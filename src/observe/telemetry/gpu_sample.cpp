#include "observe/telemetry/gpu_sample.hpp"

#include <array>
#include <limits>

namespace lockstep::telemetry {

namespace {

constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();
constexpr int kMaxEvents = 64;  // per scrape
constexpr double kMilli = 1e-3, kNano = 1e-9, kMega = 1e6, kKibi = 1024, kPercent = 0.01;

// In the order of the label's values in the metric list.
constexpr std::array<unsigned long long, 5> kThrottleBits{0x4, 0x8, 0x20, 0x40, 0x80};
constexpr std::array kViolationPolicies{0, 1};  // power, thermal
constexpr std::array kMemoryErrors{0, 1};       // corrected, uncorrected

std::string text_of(int (*function)(nvml::Device, char*, unsigned), nvml::Device device) {
  std::array<char, 96> text{};
  if (function == nullptr || function(device, text.data(), static_cast<unsigned>(text.size() - 1)) != nvml::success) {
    return "";
  }
  return text.data();
}

constexpr double kShortestLook = 1;  // seconds
constexpr double kJoulesPerCount = 1e-3;

}  // namespace

std::unique_ptr<GpuSample> GpuSample::open(std::shared_ptr<const nvml::Library> library, const std::string& device,
                                           std::string& problem) {
  nvml::Device gpu = nvml::find_gpu(*library, device, problem);
  return gpu == nullptr ? nullptr : std::unique_ptr<GpuSample>(new GpuSample(std::move(library), gpu));
}

GpuSample::GpuSample(std::shared_ptr<const nvml::Library> library, nvml::Device device)
    : library_(std::move(library)), nvml_(library_->functions()), device_(device) {
  if (nvml_.event_set_create == nullptr || nvml_.register_events == nullptr || nvml_.event_set_wait == nullptr) return;
  if (nvml_.event_set_create(&events_) != nvml::success) {
    events_ = nullptr;
  } else if (nvml_.register_events(device_, nvml::kEventXid, events_) != nvml::success) {
    if (nvml_.event_set_free != nullptr) (void)nvml_.event_set_free(events_);
    events_ = nullptr;
  }
}

GpuSample::~GpuSample() {
  if (events_ != nullptr && nvml_.event_set_free != nullptr) (void)nvml_.event_set_free(events_);
}

void GpuSample::describe(RankMetrics& metrics) const {
  std::array<char, 96> driver{};
  nvml::PciInfo pci;
  if (nvml_.driver_version != nullptr) (void)nvml_.driver_version(driver.data(), driver.size() - 1);
  if (nvml_.pci != nullptr) (void)nvml_.pci(device_, &pci);
  metrics.describe(Metric::gpu_info, {{"driver", driver.data()},
                                      {"model", text_of(nvml_.name, device_)},
                                      {"pci", pci.bus_id},
                                      {"uuid", text_of(nvml_.uuid, device_)}});
  metrics.set(Metric::gpu_info, 1);
}

bool GpuSample::gave(int result) {
  lost_ = lost_ || result == nvml::gpu_is_lost || result == nvml::reset_required;
  return result == nvml::success;
}

void GpuSample::sample(RankMetrics& metrics) {
  lost_ = false;
  sample_state(metrics);
  sample_clocks(metrics);
  sample_errors(metrics);
  sample_traffic(metrics);
  sample_events(metrics);
  metrics.set(Metric::gpu_lost, lost_ ? 1 : 0);
}

void GpuSample::sample_state(RankMetrics& metrics) {
  nvml::Utilization use;
  const bool used = nvml_.utilization != nullptr && gave(nvml_.utilization(device_, &use));
  metrics.set(Metric::gpu_utilization, used ? use.gpu * kPercent : kAbsent);
  nvml::Memory memory;
  const bool sized = nvml_.memory != nullptr && gave(nvml_.memory(device_, &memory));
  metrics.set(Metric::gpu_memory_used, sized ? static_cast<double>(memory.used) : kAbsent);
  metrics.set(Metric::gpu_memory_total, sized ? static_cast<double>(memory.total) : kAbsent);
  unsigned power = 0, celsius = 0;
  const bool powered = nvml_.power != nullptr && gave(nvml_.power(device_, &power));
  metrics.set(Metric::gpu_power, powered ? power * kMilli : kAbsent);
  unsigned long long energy = 0;
  const bool counted = nvml_.energy != nullptr && gave(nvml_.energy(device_, &energy));
  metrics.set(Metric::gpu_energy, counted ? energy * kMilli : kAbsent);
  const bool warm =
      nvml_.temperature != nullptr && gave(nvml_.temperature(device_, nvml::kTemperatureOfChip, &celsius));
  metrics.set(Metric::gpu_temperature, warm ? celsius : kAbsent);
}

void GpuSample::sample_clocks(RankMetrics& metrics) {
  const auto clock = [&](int which) {
    unsigned megahertz = 0;
    return nvml_.clock != nullptr && gave(nvml_.clock(device_, which, &megahertz)) ? megahertz * kMega : kAbsent;
  };
  metrics.set(Metric::gpu_sm_clock, clock(nvml::kClockOfProcessors));
  metrics.set(Metric::gpu_memory_clock, clock(nvml::kClockOfMemory));
  unsigned long long reasons = 0;
  const bool known = nvml_.throttle_reasons != nullptr && gave(nvml_.throttle_reasons(device_, &reasons));
  for (std::size_t i = 0; i < kThrottleBits.size(); ++i) {
    const double held = (reasons & kThrottleBits.at(i)) != 0 ? 1 : 0;
    metrics.set(Metric::gpu_throttled, known ? held : kAbsent, i);
  }
  for (std::size_t i = 0; i < kViolationPolicies.size(); ++i) {
    nvml::ViolationTime time;
    const bool timed = nvml_.violation != nullptr && gave(nvml_.violation(device_, kViolationPolicies.at(i), &time));
    metrics.set(Metric::gpu_throttle_seconds, timed ? time.violation_time * kNano : kAbsent, i);
  }
}

void GpuSample::sample_errors(RankMetrics& metrics) {
  for (std::size_t i = 0; i < kMemoryErrors.size(); ++i) {
    unsigned long long errors = 0;
    const bool known = nvml_.ecc_errors != nullptr &&
                       gave(nvml_.ecc_errors(device_, kMemoryErrors.at(i), nvml::kEccVolatile, &errors));
    metrics.set(Metric::gpu_ecc_errors, known ? static_cast<double>(errors) : kAbsent, i);
  }
}

void GpuSample::sample_traffic(RankMetrics& metrics) {
  std::array<nvml::FieldValue, 4> fields{};
  fields[0].field = nvml::kFieldPcieSent;
  fields[1].field = nvml::kFieldPcieReceived;
  fields[2].field = nvml::kFieldNvlinkSent;
  fields[3].field = nvml::kFieldNvlinkReceived;
  fields[2].scope = fields[3].scope = nvml::kAllLinks;
  const bool answered =
      nvml_.fields != nullptr && gave(nvml_.fields(device_, static_cast<int>(fields.size()), fields.data()));
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const bool known = answered && gave(fields.at(i).result);
    const bool pcie = i < 2;
    const double bytes = fields.at(i).value.u64 * (pcie ? 1 : kKibi);
    metrics.set(pcie ? Metric::gpu_pcie_bytes : Metric::gpu_nvlink_bytes, known ? bytes : kAbsent, i % 2);
  }
}

void GpuSample::sample_events(RankMetrics& metrics) {
  if (events_ == nullptr) return;
  nvml::EventData event;
  for (int i = 0; i < kMaxEvents && gave(nvml_.event_set_wait(events_, &event, 0)); ++i) {
    if ((event.type & nvml::kEventXid) == 0) continue;
    ++xids_;
    last_xid_ = event.data;
  }
  metrics.set(Metric::gpu_xid_errors, xids_);
  metrics.set(Metric::gpu_last_xid, last_xid_);
}

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
  if (counter > counter_) joules_ += (counter - counter_) * kJoulesPerCount;
  counter_ = counter;
  return joules_;
}

}  // namespace lockstep::telemetry
