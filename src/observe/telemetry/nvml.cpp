#include "observe/telemetry/nvml.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <initializer_list>

namespace lockstep::telemetry::nvml {

namespace {

/// Finds the first of these names that the library has: newer drivers keep old names, old ones lack new names.
template <class Function>
void find(const SharedLibrary& library, Function*& function, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (function == nullptr) function = library.find<Function>(name);
  }
}

void find_device(const SharedLibrary& library, Functions& f) {
  find(library, f.device_by_index, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  find(library, f.device_by_pci, {"nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId"});
  find(library, f.name, {"nvmlDeviceGetName"});
  find(library, f.uuid, {"nvmlDeviceGetUUID"});
  find(library, f.pci, {"nvmlDeviceGetPciInfo_v3"});  // older functions have a shorter structure
  find(library, f.utilization, {"nvmlDeviceGetUtilizationRates"});
  find(library, f.memory, {"nvmlDeviceGetMemoryInfo"});
  find(library, f.power, {"nvmlDeviceGetPowerUsage"});
  find(library, f.energy, {"nvmlDeviceGetTotalEnergyConsumption"});
  find(library, f.temperature, {"nvmlDeviceGetTemperature"});
  find(library, f.clock, {"nvmlDeviceGetClockInfo"});
  find(library, f.throttle_reasons,
       {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  find(library, f.violation, {"nvmlDeviceGetViolationStatus"});
  find(library, f.ecc_errors, {"nvmlDeviceGetTotalEccErrors"});
  find(library, f.fields, {"nvmlDeviceGetFieldValues"});
}

Functions find_all(const SharedLibrary& library) {
  Functions f;
  find(library, f.init, {"nvmlInit_v2", "nvmlInit"});
  find(library, f.shutdown, {"nvmlShutdown"});
  find(library, f.error_text, {"nvmlErrorString"});
  find(library, f.driver_version, {"nvmlSystemGetDriverVersion"});
  find_device(library, f);
  find(library, f.event_set_create, {"nvmlEventSetCreate"});
  find(library, f.event_set_free, {"nvmlEventSetFree"});
  find(library, f.register_events, {"nvmlDeviceRegisterEvents"});
  find(library, f.event_set_wait, {"nvmlEventSetWait_v2"});  // the older function fills in less
  return f;
}

}  // namespace

Library::Library(const SharedLibrary& library) : functions_(find_all(library)) {}

Library::~Library() {
  if (initialised_ && functions_.shutdown != nullptr) (void)functions_.shutdown();
}

std::shared_ptr<const Library> Library::load(const std::string& path, std::string& problem) {
  const auto opened = SharedLibrary::open(path, problem);
  if (!opened) return nullptr;
  const std::shared_ptr<Library> library(new Library(opened));
  if (library->functions_.init == nullptr) {
    problem = path + ": is not NVML: it has no nvmlInit";
    return nullptr;
  }
  const int result = library->functions_.init();
  library->initialised_ = result == success;
  if (!library->initialised_) {
    problem = fmt::format("{}: nvmlInit: {}", path, library->error_text(result));
    return nullptr;
  }
  return library;
}

std::string Library::error_text(int result) const {
  const char* text = functions_.error_text == nullptr ? nullptr : functions_.error_text(result);
  return text == nullptr ? fmt::format("error {}", result) : text;
}

std::string driver_version(const Library& library) {
  std::array<char, 80> text{};  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
  const auto ask = library.functions().driver_version;
  const bool known = ask != nullptr && ask(text.data(), static_cast<unsigned>(text.size() - 1)) == success;
  return known ? text.data() : "";
}

Device find_gpu(const Library& library, const std::string& device, std::string& problem) {
  const Functions& nvml = library.functions();
  Device gpu = nullptr;
  int result = not_supported;
  if (device.find(':') != std::string::npos) {
    if (nvml.device_by_pci != nullptr) result = nvml.device_by_pci(device.c_str(), &gpu);
  } else {
    unsigned index = 0;
    std::from_chars(device.data(), device.data() + device.size(), index);
    if (nvml.device_by_index != nullptr) result = nvml.device_by_index(index, &gpu);
  }
  if (result == success) return gpu;
  problem = fmt::format("NVML knows no GPU {}: {}", device, library.error_text(result));
  return nullptr;
}

}  // namespace lockstep::telemetry::nvml
