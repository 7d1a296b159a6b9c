// The part of NVML, NVIDIA's management library, that is used here: loaded at run time, with our own declarations, so
// that neither its header nor a driver is needed to build or to run on CPUs.
//
// Functions that a driver does not have are null. Names, numbers and layouts are those of NVML's interface, which is
// stable: https://docs.nvidia.com/deploy/nvml-api/
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/shared_library.hpp"

namespace lockstep::telemetry::nvml {

using Device = void*;
using EventSet = void*;

enum Result : int {  // the ones that matter here
  success = 0,
  not_supported = 3,
  gpu_is_lost = 15,
  reset_required = 16,
};

struct Utilization {
  unsigned gpu = 0, memory = 0;  ///< percent
};
struct Memory {
  unsigned long long total = 0, free = 0, used = 0;  // NOLINT(google-runtime-int): NVML's types
};
struct ViolationTime {
  unsigned long long reference_time = 0, violation_time = 0;  ///< the second in nanoseconds
};
struct EventData {
  Device device = nullptr;
  unsigned long long type = 0, data = 0;  ///< of an XID: its number
  unsigned gpu_instance = 0, compute_instance = 0;
};
struct FieldValue {
  unsigned field = 0, scope = 0;
  long long timestamp = 0, latency = 0;
  int type = 0;
  int result = 0;
  union {
    double real;
    unsigned u32;
    unsigned long long u64;
    long long s64;
  } value{};
};
struct PciInfo {
  char bus_id_legacy[16] = {};
  unsigned domain = 0, bus = 0, device = 0, pci_device_id = 0, pci_subsystem_id = 0;
  char bus_id[32] = {};
};
static_assert(sizeof(FieldValue) == 40 && sizeof(EventData) == 32 && sizeof(PciInfo) == 68, "NVML's layouts");

inline constexpr int kTemperatureOfChip = 0;
inline constexpr int kClockOfProcessors = 1, kClockOfMemory = 2;
inline constexpr int kEccVolatile = 0;
inline constexpr unsigned long long kEventXid = 8;
inline constexpr unsigned kFieldNvlinkSent = 138, kFieldNvlinkReceived = 139;  ///< KiB; scope: all links
inline constexpr unsigned kFieldPcieSent = 197, kFieldPcieReceived = 198;      ///< bytes
inline constexpr unsigned kAllLinks = ~0U;

/// The functions. Every one returns a Result.
struct Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_text)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*device_by_index)(unsigned, Device*) = nullptr;
  int (*device_by_pci)(const char*, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*pci)(Device, PciInfo*) = nullptr;
  int (*utilization)(Device, Utilization*) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;             ///< milliwatts
  int (*energy)(Device, unsigned long long*) = nullptr;  ///< millijoules
  int (*temperature)(Device, int, unsigned*) = nullptr;  ///< degrees Celsius
  int (*clock)(Device, int, unsigned*) = nullptr;        ///< MHz
  int (*throttle_reasons)(Device, unsigned long long*) = nullptr;
  int (*violation)(Device, int, ViolationTime*) = nullptr;
  int (*ecc_errors)(Device, int, int, unsigned long long*) = nullptr;
  int (*fields)(Device, int, FieldValue*) = nullptr;
  int (*event_set_create)(EventSet*) = nullptr;
  int (*event_set_free)(EventSet) = nullptr;
  int (*register_events)(Device, unsigned long long, EventSet) = nullptr;
  int (*event_set_wait)(EventSet, EventData*, unsigned) = nullptr;
};

/// The library, loaded and initialised; destroying the last reference shuts it down.
class Library {
 public:
  /// Null if it cannot be used; `problem` says why.
  [[nodiscard]] static std::shared_ptr<const Library> load(const std::string& path, std::string& problem);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const Functions& functions() const { return functions_; }
  std::string error_text(int result) const;

 private:
  explicit Library(const SharedLibrary& library);
  bool initialised_ = false;
  Functions functions_;
};

/// "580.65.06", the driver's own version; empty: unknown.
[[nodiscard]] std::string driver_version(const Library& library);

/// `device`: "0", NVML's index; or a PCI bus id, "0000:3B:00.0", as CUDA reports it. Null if there is no such GPU;
/// `problem` says why.
[[nodiscard]] Device find_gpu(const Library& library, const std::string& device, std::string& problem);

}  // namespace lockstep::telemetry::nvml
