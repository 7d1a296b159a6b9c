#include "device/cuda/cuda_gpu.hpp"

#include <fmt/format.h>

#include <cstring>

#include "lockstep/error.hpp"

namespace lockstep::device {

namespace {

class CapturedGraph final : public GpuGraph {
 public:
  CapturedGraph(CudaGraphExec graph, const GpuStream& stream) : graph_(std::move(graph)), stream_(stream) {}
  void launch() override { LOCKSTEP_GPU(stream_.place(), cudaGraphLaunch(graph_.get(), stream_.cuda())); }

 private:
  CudaGraphExec graph_;
  const GpuStream& stream_;
};

}  // namespace

CudaGpu::CudaGpu(int ordinal, GpuPlace place) : ordinal_(ordinal), place_(place), trail_(std::move(place)) {
  make_current();
}

void CudaGpu::make_current() {
  LOCKSTEP_GPU(trail_.place(), cudaSetDevice(ordinal_));
}

Gpu::Stream CudaGpu::make_stream() {
  streams_.push_back(device::make_stream(trail_.place()));
  kernel_streams_.emplace_back();
  return static_cast<Stream>(streams_.size() - 1);
}

Gpu::Stream CudaGpu::make_kernel_stream() {
  const Stream stream = make_stream();
  kernel_streams_.back() = std::make_unique<GpuStream>(at(stream), place_, cudnn_plans_);
  return stream;
}

Gpu::Event CudaGpu::make_event() {
  CudaEvent event = device::make_event(trail_.place());
  const auto address = reinterpret_cast<std::uintptr_t>(event.get());
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  return Event{address};
}

void CudaGpu::record(Event event, Stream stream) {
  LOCKSTEP_GPU(trail_.place(), cudaEventRecord(at(event), at(stream)));
}

void CudaGpu::wait(Stream stream, Event event) {
  LOCKSTEP_GPU(trail_.place(), cudaStreamWaitEvent(at(stream), at(event), 0));
}

void CudaGpu::wait(Event event) {
  LOCKSTEP_GPU(trail_.place(), cudaEventSynchronize(at(event)));
}

bool CudaGpu::done(Event event) {
  const cudaError_t state = cudaEventQuery(at(event));
  if (state == cudaErrorNotReady) {
    forget(state);
    return false;
  }
  if (state != cudaSuccess) check_gpu(state, "cudaEventQuery(at(event))", trail_.place());
  return true;
}

void CudaGpu::enter(Stream stream, std::uint64_t step, const std::string& op) {
  kernel_stream(stream)->enter(step, op);
  trail_.enter(static_cast<int>(stream), step, op);
}

std::byte* CudaGpu::allocate(std::size_t bytes) {
  DeviceMemory memory = make_device_memory(bytes, trail_.place());
  auto* const address = static_cast<std::byte*>(memory.get());
  const std::lock_guard lock(mutex_);
  device_.emplace(address, std::move(memory));
  return address;
}

void CudaGpu::free(std::byte* memory) {
  const std::lock_guard lock(mutex_);
  device_.erase(memory);
}

std::byte* CudaGpu::allocate_pinned(std::size_t bytes) {
  PinnedMemory memory = make_pinned_memory(bytes, trail_.place());
  auto* const address = static_cast<std::byte*>(memory.get());
  const std::lock_guard lock(mutex_);
  pinned_.emplace(address, std::move(memory));
  return address;
}

void CudaGpu::free_pinned(std::byte* memory) {
  const std::lock_guard lock(mutex_);
  pinned_.erase(memory);
}

void CudaGpu::fill(std::byte* pinned, const std::byte* from, std::size_t bytes) {
  std::memcpy(pinned, from, bytes);
}

void CudaGpu::copy_in(Stream stream, std::byte* device, const std::byte* pinned, std::size_t bytes) {
  LOCKSTEP_GPU(trail_.place(), cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, at(stream)));
}

void CudaGpu::copy_out(Stream stream, std::byte* pinned, const std::byte* device, std::size_t bytes) {
  LOCKSTEP_GPU(trail_.place(), cudaMemcpyAsync(pinned, device, bytes, cudaMemcpyDeviceToHost, at(stream)));
}

void CudaGpu::copy(Stream stream, std::byte* to, const std::byte* from, std::size_t bytes) {
  LOCKSTEP_GPU(trail_.place(), cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, at(stream)));
}

void CudaGpu::clear(Stream stream, std::byte* device, std::size_t bytes) {
  LOCKSTEP_GPU(trail_.place(), cudaMemsetAsync(device, 0, bytes, at(stream)));
}

std::unique_ptr<GpuGraph> CudaGpu::capture(Stream stream, const std::function<void()>& launch) {
  const GpuStream& on = *kernel_stream(stream);
  try {
    return std::make_unique<CapturedGraph>(make_graph(on.cuda(), on.place(), launch), on);
  } catch (const Error& error) {
    if (error.code() != ExitCode::infrastructure) throw;
    throw Error(error.code(),
                fmt::format("{}; cuda_graphs: false launches kernels without recording them", error.what()));
  }
}

std::size_t CudaGpu::free_memory() {
  std::size_t free = 0, total = 0;
  LOCKSTEP_GPU(trail_.place(), cudaMemGetInfo(&free, &total));
  return free;
}

}  // namespace lockstep::device
