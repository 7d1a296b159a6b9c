// CUDA's runtime: kernels' stubs, launches, errors, the device.
#include "cuda/interpreter/cudart.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

namespace lockstep::ptx {

namespace {

cudaError_t& last_error() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}

struct Configuration {
  dim3 blocks, threads;
  std::size_t shared;
  void* stream;
};

int& gpu_here() {
  thread_local int ordinal = 0;
  return ordinal;
}

/// The configuration of the launch that the thread is about to make: set by <<<>>>, read by its stub.
std::vector<Configuration>& configurations() {
  thread_local std::vector<Configuration> all;
  return all;
}

}  // namespace

cudaError_t failed(cudaError_t error) {
  last_error() = error;
  return error;
}

cudaError_t state() {
  return machine().problems.is_broken() ? failed(cudaErrorIllegalAddress) : cudaSuccess;
}

Stream*& recorded_here() {
  thread_local Stream* stream = nullptr;
  return stream;
}

bool refused_while_recording(const char* call) {
  if (recorded_here() == nullptr) return false;
  machine().problems.add(fmt::format("{} while a graph is recorded", call));
  Streams::spoil(*recorded_here());
  (void)failed(kRefused);
  return true;
}

Stream* stream_of(cudaStream_t stream, const char* call) {
  auto* const found = reinterpret_cast<Stream*>(stream);
  if (machine().streams.has(found)) return found;
  machine().problems.add(
      fmt::format("{}: {}", call, stream == nullptr ? "the default stream" : "a stream that isn't there"));
  (void)failed(cudaErrorInvalidResourceHandle);
  return nullptr;
}

bool is_on_its_gpu(const char* call) {
  int& ordinal = machine().ordinal;
  if (ordinal < 0) ordinal = gpu_here();
  if (ordinal == gpu_here()) return true;
  machine().problems.add(
      fmt::format("{} on a thread whose GPU is {}, where the process's is {}", call, gpu_here(), ordinal));
  (void)failed(cudaErrorInvalidResourceHandle);
  return false;
}

bool is_known(const char* call, unsigned long long flags, unsigned long long known) {
  if (flags == known) return true;
  machine().problems.add(fmt::format("{}: flags {:#x} aren't known, only {:#x} are", call, flags, known));
  (void)failed(cudaErrorInvalidValue);
  return false;
}

}  // namespace lockstep::ptx

using lockstep::ptx::configurations;
using lockstep::ptx::failed;
using lockstep::ptx::machine;
using lockstep::ptx::stream_of;

extern "C" {

void** __cudaRegisterFatBinary(void* /*binary*/) {
  LOCKSTEP_INTERPRETED;
  machine().load_module();
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void** /*handle*/) {}
void __cudaUnregisterFatBinary(void** /*handle*/) {}
char __cudaInitModule(void** /*handle*/) {
  return 1;
}
void __cudaRegisterVar(void** /*handle*/, char* /*host*/, char* /*device*/, const char* name, int /*ext*/,
                       size_t /*size*/, int /*constant*/, int /*global*/) {
  machine().problems.add(std::string("a variable of the module isn't known: ") + name);
}
void __cudaRegisterFunction(void** /*handle*/, const char* host, char* /*device*/, const char* name, int /*limit*/,
                            uint3* /*thread*/, uint3* /*block*/, dim3* /*block_size*/, dim3* /*grid_size*/,
                            int* /*warp*/) {
  LOCKSTEP_INTERPRETED;
  machine().functions[host] = name;
}
unsigned __cudaPushCallConfiguration(dim3 blocks, dim3 threads, size_t shared, void* stream) {
  configurations().push_back({blocks, threads, shared, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* blocks, dim3* threads, size_t* shared, void* stream) {
  const auto last = configurations().back();
  configurations().pop_back();
  *blocks = last.blocks;
  *threads = last.threads;
  *shared = last.shared;
  std::memcpy(stream, &last.stream, sizeof last.stream);
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void* function, dim3 blocks, dim3 threads, void** arguments, size_t shared,
                             cudaStream_t stream) {
  LOCKSTEP_INTERPRETED;
  const auto name = machine().functions.find(function);
  if (name == machine().functions.end()) return failed(cudaErrorInvalidDeviceFunction);
  auto* const on = stream_of(stream, "a kernel's launch");
  if (on == nullptr || !lockstep::ptx::is_on_its_gpu("a kernel's launch")) return cudaErrorInvalidResourceHandle;
  const cudaError_t done = machine().launch(name->second, blocks, threads, arguments, shared, *on);
  return done == cudaSuccess ? lockstep::ptx::state() : failed(done);
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 blocks, dim3 threads, void** arguments, size_t shared,
                               cudaStream_t stream) {
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), blocks, threads, arguments, shared, stream);
}

cudaError_t cudaSetDevice(int device) {
  LOCKSTEP_INTERPRETED;
  if (device < 0) return failed(cudaErrorInvalidDevice);
  lockstep::ptx::gpu_here() = device;
  return lockstep::ptx::is_on_its_gpu("cudaSetDevice") ? cudaSuccess : failed(cudaErrorInvalidDevice);
}
cudaError_t cudaGetDevice(int* device) {
  *device = lockstep::ptx::gpu_here();
  return cudaSuccess;
}
/// What cuDNN's frontend asks for: the compute capability. Everything else is 0.
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int /*device*/) {
  *properties = {};
  properties->major = 9;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  return std::exchange(lockstep::ptx::last_error(), cudaSuccess);
}
const char* cudaGetErrorString(cudaError_t error) {
  thread_local std::array<char, 64> text;
  (void)std::snprintf(text.data(), text.size(), "error %d of the interpreted GPU", static_cast<int>(error));
  return text.data();
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

}  // extern "C"
