// A stand-in for NVIDIA's libnvidia-ml: two GPUs that answer with known numbers, to test queries without a GPU.
// $NVML_STAND_IN changes it; words, separated by commas:
//
//   no_driver     nvmlInit fails
//   lost          every query about GPU 0 is answered with "GPU is lost"
//   unsupported   counters of energy, of memory errors and of NVLink are not supported
//   drawing       the energy counter grows by 1,000 J from one query to the next
//   busy          a utilization of 97 % and a clock throttled by heat, and an XID 79 at the first query
//
// $NVML_STAND_IN_DRIVER is the driver's version: 550.54.15.
//
// Built with OLD_DRIVER it lacks the functions that drivers before about 450 lack.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

enum Result { success = 0, not_supported = 3, driver_not_loaded = 9, timeout = 10, not_found = 6, lost = 15 };

bool says(const char* word) {
  const char* words = std::getenv("NVML_STAND_IN");
  return words != nullptr && ("," + std::string(words) + ",").find("," + std::string(word) + ",") != std::string::npos;
}

// A device handle is its number plus one.
bool is_lost(void* device) {
  return says("lost") && device == reinterpret_cast<void*>(1);
}

// As in tests/cuda/stand_in_driver.cpp, in NVML's own order.
[[maybe_unused]] unsigned bus_of(unsigned long gpu) {
  return 0x70 + 0x10 * static_cast<unsigned>(gpu);
}

int give(void* device, unsigned* to, unsigned value) {
  if (is_lost(device)) return lost;
  *to = value;
  return success;
}

int copy(char* to, unsigned size, const char* text) {
  std::strncpy(to, text, size);
  return success;
}

struct Utilization {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};
struct Violation {
  unsigned long long reference, time;
};
struct Event {
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
struct Field {
  unsigned id, scope;
  long long timestamp, latency;
  int type, result;
  unsigned long long value;
};
struct Pci {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char bus_id[32];
};

}  // namespace

extern "C" {

const char* nvmlErrorString(int result) {
  switch (result) {
    case driver_not_loaded:
      return "Driver Not Loaded";
    case not_found:
      return "Not Found";
    case lost:
      return "GPU is lost";
    default:
      return "Unknown Error";
  }
}
int nvmlShutdown() {
  return success;
}
int nvmlSystemGetDriverVersion(char* to, unsigned size) {
  const char* given = std::getenv("NVML_STAND_IN_DRIVER");
  return copy(to, size, given == nullptr ? "550.54.15" : given);
}
int nvmlDeviceGetName(void*, char* to, unsigned size) {
  return copy(to, size, "Stand-in GPU");
}
int nvmlDeviceGetUUID(void* device, char* to, unsigned size) {
  return copy(to, size, device == reinterpret_cast<void*>(1) ? "GPU-0000" : "GPU-0001");
}
int nvmlDeviceGetUtilizationRates(void* device, Utilization* to) {
  to->memory = 20;
  return give(device, &to->gpu, says("busy") ? 97 : 4);
}
int nvmlDeviceGetMemoryInfo(void* device, Memory* to) {
  *to = {80ULL << 30, 60ULL << 30, 20ULL << 30};
  return is_lost(device) ? lost : success;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* to) {
  return give(device, to, 250'500);
}
int nvmlDeviceGetTemperature(void* device, int, unsigned* to) {
  return give(device, to, 61);
}
int nvmlDeviceGetClockInfo(void* device, int which, unsigned* to) {
  return give(device, to, which == 1 ? 1980 : 2619);
}
int nvmlDeviceGetTotalEccErrors(void* device, int kind, int, unsigned long long* to) {
  *to = kind == 0 ? 5 : 1;
  return is_lost(device) ? lost : says("unsupported") ? not_supported : success;
}
int nvmlDeviceGetViolationStatus(void* device, int policy, Violation* to) {
  *to = {0, policy == 0 ? 1'500'000'000ULL : 0};
  return is_lost(device) ? lost : success;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* to) {
  *to = says("busy") ? 0x40 : 0x1;
  return is_lost(device) ? lost : success;
}

#ifdef OLD_DRIVER

int nvmlInit() {
  return says("no_driver") ? driver_not_loaded : success;
}
int nvmlDeviceGetHandleByIndex(unsigned index, void** to) {
  *to = reinterpret_cast<void*>(index + 1UL);
  return index < 2 ? success : not_found;
}

#else

static int xids_sent = 0;

int nvmlInit_v2() {
  return says("no_driver") ? driver_not_loaded : success;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** to) {
  *to = reinterpret_cast<void*>(index + 1UL);
  return index < 2 ? success : not_found;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** to) {
  unsigned domain = 0, bus = 0;
  if (std::sscanf(id, "%x:%x:", &domain, &bus) != 2) return not_found;
  for (unsigned long i = 0; i < 2; ++i) {
    if (bus == bus_of(i)) return *to = reinterpret_cast<void*>(i + 1), success;
  }
  return not_found;
}
int nvmlDeviceGetPciInfo_v3(void* device, Pci* to) {
  *to = {};
  to->bus = bus_of(reinterpret_cast<unsigned long>(device) - 1);
  std::snprintf(to->bus_id, sizeof to->bus_id, "00000000:%02X:00.0", to->bus);
  return success;
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* to) {
  static unsigned long long drawn = 12'345'678;
  *to = drawn;
  if (says("drawing")) drawn += 1'000'000;
  return is_lost(device) ? lost : says("unsupported") ? not_supported : success;
}
int nvmlDeviceGetFieldValues(void* device, int count, Field* fields) {
  for (int i = 0; i < count; ++i) {
    const bool nvlink = fields[i].id == 138 || fields[i].id == 139;
    fields[i].result = nvlink && says("unsupported") ? not_supported : success;
    fields[i].value = nvlink && fields[i].scope == ~0U ? 3 : fields[i].id * 1000;
  }
  return is_lost(device) ? lost : success;
}
int nvmlEventSetCreate(void** set) {
  xids_sent = 0;
  *set = &xids_sent;
  return success;
}
int nvmlEventSetFree(void*) {
  return success;
}
int nvmlDeviceRegisterEvents(void*, unsigned long long types, void*) {
  return types == 8 ? success : not_supported;
}
int nvmlEventSetWait_v2(void*, Event* event, unsigned) {
  if (!says("busy") || xids_sent > 0) return timeout;
  ++xids_sent;
  *event = {nullptr, 8, 79, 0, 0};
  return success;
}

#endif
}
