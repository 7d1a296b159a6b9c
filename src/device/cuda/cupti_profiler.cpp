#include "device/cuda/cupti_profiler.hpp"

#include <cuda_runtime_api.h>
#include <cxxabi.h>
#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <utility>

namespace lockstep::device {

/// The reader of the buffers: CUPTI's callbacks have no user pointer. It is the only variable of the module, which
/// belongs to no room, so there are never two of it.
std::atomic<CuptiProfiler*> cupti_reader{nullptr};

namespace {

constexpr std::size_t kBufferBytes = std::size_t{4} << 20, kAlignment = 64;

std::array<CUpti_ActivityKind, 3> recorded_kinds() {
  return {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, kBufferBytes));
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *max_records = 0;  // no limit
}

void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t /*size*/,
                          std::size_t filled) {
  if (CuptiProfiler* reader = cupti_reader.load(); reader != nullptr && buffer != nullptr) {
    reader->read(context, stream, buffer, filled);
  }
  std::free(buffer);
}

std::string demangled(const char* name) {
  if (name == nullptr) return "kernel";
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 ? text.get() : name;
}

const char* name_of_copy(std::uint8_t kind) {
  if (kind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD) return "copy to the GPU";
  if (kind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH) return "copy to the host";
  return kind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOD ? "copy on the GPU" : "copy";
}

/// From a record of any kind with these fields.
template <class Record>
GpuActivity activity_of(const Record& record, std::string name, std::int64_t bytes) {
  return {std::move(name), record.streamId, record.start, record.end, bytes};
}

template <class Function>
bool find(const SharedLibrary& library, const char* name, Function*& function) {
  function = library.find<Function>(name);
  return function != nullptr;
}

bool find_all(const SharedLibrary& library, Cupti& f) {
  return find(library, "cuptiActivityRegisterCallbacks", f.register_callbacks) &&
         find(library, "cuptiActivityEnable", f.enable) && find(library, "cuptiActivityDisable", f.disable) &&
         find(library, "cuptiActivityFlushAll", f.flush) &&
         find(library, "cuptiActivityGetNextRecord", f.next_record) &&
         find(library, "cuptiActivityGetNumDroppedRecords", f.dropped_records) &&
         find(library, "cuptiGetTimestamp", f.timestamp) && find(library, "cuptiGetResultString", f.result_text);
}

/// A record that was still running has no end.
template <class Record>
void add_finished(const Record& record, const std::string& name, std::int64_t bytes,
                  std::vector<GpuActivity>& activities) {
  if (record.end != 0) activities.push_back(activity_of(record, name, bytes));
}

}  // namespace

void add_activity(const CUpti_Activity& record, std::vector<GpuActivity>& activities) {
  if (record.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    const auto& kernel = reinterpret_cast<const CUpti_ActivityKernel10&>(record);
    add_finished(kernel, demangled(kernel.name), -1, activities);
  } else if (record.kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpy6&>(record);
    add_finished(copy, name_of_copy(copy.copyKind), static_cast<std::int64_t>(copy.bytes), activities);
  } else if (record.kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    const auto& fill = reinterpret_cast<const CUpti_ActivityMemset4&>(record);
    add_finished(fill, "fill", static_cast<std::int64_t>(fill.bytes), activities);
  }
}

CuptiProfiler::~CuptiProfiler() {
  CuptiProfiler* self = this;
  cupti_reader.compare_exchange_strong(self, nullptr);
}

std::string CuptiProfiler::failed(const char* call, CUptiResult code) const {
  const char* text = nullptr;
  if (cupti_.result_text(code, &text) != CUPTI_SUCCESS || text == nullptr) text = "unknown error";
  return fmt::format("{} failed with {} ({})", call, static_cast<int>(code), text);
}

std::string CuptiProfiler::load() {
  if (library_) return "";
  std::string why;
  const std::string name = fmt::format("libcupti.so.{}", CUDART_VERSION / 1000);
  library_ = SharedLibrary::open(name, why);
  if (!library_) return why;
  if (find_all(library_, cupti_)) return "";
  library_ = {};
  return name + " lacks a function";
}

ClockPair CuptiProfiler::clocks() const {
  std::uint64_t gpu = 0;
  const double before = steady_seconds();
  (void)cupti_.timestamp(&gpu);
  return {(before + steady_seconds()) / 2, gpu};
}

void CuptiProfiler::disable() const {
  for (const auto kind : recorded_kinds()) (void)cupti_.disable(kind);  // fails for a kind that is not enabled
}

std::string CuptiProfiler::start() {
  if (std::string problem = load(); !problem.empty()) return problem;
  cupti_reader = this;
  if (const auto code = cupti_.register_callbacks(give_buffer, take_buffer); code != CUPTI_SUCCESS) {
    return failed("cuptiActivityRegisterCallbacks", code);
  }
  for (const auto kind : recorded_kinds()) {
    const auto code = cupti_.enable(kind);
    if (code == CUPTI_SUCCESS) continue;
    disable();
    return failed("cuptiActivityEnable", code);
  }
  first_ = clocks();
  return "";
}

GpuRecording CuptiProfiler::stop() {
  (void)cudaDeviceSynchronize();  // the last step's update may still be running, and CUPTI does not wait
  GpuRecording recording{.activities = {}, .first = first_, .last = clocks(), .problem = ""};
  disable();
  if (const auto code = cupti_.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED); code != CUPTI_SUCCESS) {
    recording.problem = failed("cuptiActivityFlushAll", code);
  }
  const std::lock_guard lock(mutex_);
  recording.activities = std::exchange(activities_, {});
  if (dropped_ > 0) recording.problem = fmt::format("{} records were dropped; trace fewer steps", dropped_);
  dropped_ = 0;
  return recording;
}

void CuptiProfiler::read(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  CUpti_Activity* record = nullptr;
  while (cupti_.next_record(buffer, bytes, &record) == CUPTI_SUCCESS) add_activity(*record, activities_);
  std::size_t dropped = 0;
  if (cupti_.dropped_records(context, stream, &dropped) == CUPTI_SUCCESS) dropped_ += dropped;
}

void CuptiProfiler::begin(const std::string& name) {
  (void)nvtxRangePushA(name.c_str());
}

void CuptiProfiler::end() {
  (void)nvtxRangePop();
}

}  // namespace lockstep::device
