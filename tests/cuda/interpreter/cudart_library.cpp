// The interpreted GPU's interface for libraries with their own kernels.
#include "cuda/interpreter/library_kernel.hpp"

#include "cuda/interpreter/cudart.hpp"

namespace lockstep::ptx {

namespace {

class MemoryOfWork final : public LibraryMemory {
 public:
  explicit MemoryOfWork(const Work& work) : work_(work) {}
  const u8* reads(const char* who, u32 part, const void* memory, std::size_t bytes) override {
    return at(who, part, memory, bytes, Touch::read);
  }
  u8* writes(const char* who, u32 part, void* memory, std::size_t bytes) override {
    return at(who, part, memory, bytes, Touch::write);
  }

 private:
  u8* at(const char* who, u32 part, const void* memory, std::size_t bytes, Touch how) {
    Allocation* const found = touched(who, memory, bytes, how, Space::gpu, work_, part);
    return found == nullptr ? nullptr : found->data(reinterpret_cast<u64>(memory));
  }
  const Work& work_;
};

}  // namespace

}  // namespace lockstep::ptx

using lockstep::ptx::machine;

extern "C" {

std::mutex& cudaInterpreterMutex() {
  return machine().mutex;
}

cudaError_t cudaInterpreterPut(cudaStream_t stream, const char* call,
                               const std::shared_ptr<lockstep::ptx::LibraryKernel>& kernel) {
  auto* const on = lockstep::ptx::stream_of(stream, call);
  if (on == nullptr) return cudaErrorInvalidResourceHandle;
  if (on->is_recording()) {
    machine().problems.add(std::string(call) + " on a stream that is recorded isn't known");
    lockstep::ptx::Streams::spoil(*on);
    return lockstep::ptx::failed(lockstep::ptx::kRefused);
  }
  machine().streams.put_tried(*on, [kernel](const lockstep::ptx::Work& work) {
    lockstep::ptx::MemoryOfWork memory(work);
    return kernel->run(memory);
  });
  return lockstep::ptx::state();
}

cudaError_t cudaInterpreterLaunch(cudaStream_t stream, const char* call,
                                  const std::shared_ptr<lockstep::ptx::LibraryKernel>& kernel) {
  auto* const on = lockstep::ptx::stream_of(stream, call);
  if (on == nullptr || !lockstep::ptx::is_on_its_gpu(call)) return cudaErrorInvalidResourceHandle;
  machine().streams.put(*on, [kernel](const lockstep::ptx::Work& work) {
    if (machine().costs != nullptr) {
      machine().costs->add(kernel->cost());
      return;
    }
    lockstep::ptx::MemoryOfWork memory(work);
    (void)kernel->run(memory);
  });
  return lockstep::ptx::state();
}

void cudaInterpreterGoOn() {
  (void)machine().streams.step();
}

void cudaInterpreterProblem(const std::string& what) {
  machine().problems.add(what);
}

}  // extern "C"
