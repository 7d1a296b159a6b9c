// libcuda.so.1 for tests without a GPU: the functions that lockstep calls, with answers from the environment.
//   STAND_IN_DRIVER  the CUDA version it supports: 13000
//   STAND_IN_INIT    what cuInit returns
//   STAND_IN_GPUS    number of GPUs; an empty CUDA_VISIBLE_DEVICES hides all, one that names slices (MIG-...) shows the
//                    first of them and nothing else, and any other value is ignored
//   STAND_IN_FIRST   the first one's number in the machine
//   STAND_IN_MAJOR   compute capability
//   STAND_IN_SAME    1: all are the same model
// The machine's GPU i is on bus 0x90 - 0x10 i, so that the driver's order is not that of the bus.
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

int setting(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

constexpr int kNoDevice = 100;

/// The slice that is shown; empty: whole GPUs are.
std::string slice() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string names = visible == nullptr ? "" : visible;
  return names.rfind("MIG-", 0) == 0 ? names.substr(0, names.find(',')) : "";
}

}  // namespace

extern "C" {

int cuDriverGetVersion(int* version) {
  *version = setting("STAND_IN_DRIVER", 13000);
  return 0;
}
int cuInit(unsigned /*flags*/) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const bool hidden = visible != nullptr && *visible == '\0';
  return hidden || setting("STAND_IN_GPUS", 2) == 0 ? kNoDevice : setting("STAND_IN_INIT", 0);
}
int cuDeviceGetCount(int* count) {
  *count = slice().empty() ? setting("STAND_IN_GPUS", 2) : 1;
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuDeviceGetName(char* name, int length, int device) {
  std::string model = setting("STAND_IN_SAME", 0) != 0 ? "Stand-in" : device == 0 ? "Stand-in 0" : "Stand-in 1";
  if (!slice().empty()) model = "Stand-in " + slice();
  std::strncpy(name, model.c_str(), static_cast<unsigned>(length));
  return 0;
}
int cuDeviceTotalMem_v2(unsigned long* bytes, int device) {
  *bytes = (8UL + static_cast<unsigned long>(device)) << 30;
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  constexpr int kPciBus = 33, kPciDevice = 34, kPciDomain = 50, kMajor = 75, kClockRate = 13, kProcessors = 16;
  *value = 0;
  if (attribute == kPciBus) *value = 0x90 - 0x10 * (device + setting("STAND_IN_FIRST", 0));
  if (attribute == kProcessors) *value = 132;
  if (attribute == kClockRate) *value = 1'980'000;  // kHz
  if (attribute == kMajor) *value = setting("STAND_IN_MAJOR", 9);
  return attribute == kPciDevice || attribute == kPciDomain || *value != 0 || attribute == kMajor + 1 ? 0 : 1;
}
int cuGetErrorName(int code, const char** name) {
  *name = code == 802 ? "CUDA_ERROR_SYSTEM_NOT_READY" : code == 803 ? "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" : nullptr;
  return *name == nullptr ? 1 : 0;
}

}  // extern "C"
