// CuptiProfiler: the GpuProfiler of device/gpu/gpu_profiler.hpp. Kernels, copies and fills come from CUPTI's activity
// records, ranges go to NVTX (for Nsight Systems). libcupti is loaded by the first start(), so a run that is not traced
// is not affected by it.
#pragma once

#include <cupti_activity.h>

#include <mutex>
#include <vector>

#include "core/shared_library.hpp"
#include "device/gpu/gpu_profiler.hpp"

namespace lockstep::device {

/// The functions of CUPTI that are used here.
struct Cupti {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped_records = nullptr;
  decltype(&cuptiGetTimestamp) timestamp = nullptr;
  decltype(&cuptiGetResultString) result_text = nullptr;
};

/// Adds the activity in the record, if it is of a recorded kind.
void add_activity(const CUpti_Activity& record, std::vector<GpuActivity>& activities);

class CuptiProfiler final : public GpuProfiler {
 public:
  CuptiProfiler() = default;
  CuptiProfiler(const CuptiProfiler&) = delete;
  CuptiProfiler& operator=(const CuptiProfiler&) = delete;
  ~CuptiProfiler() override;
  [[nodiscard]] std::string start() override;
  [[nodiscard]] GpuRecording stop() override;
  void begin(const std::string& name) override;
  void end() override;

  /// A buffer that CUPTI has filled. Called by one of CUPTI's threads.
  void read(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t bytes);

 private:
  [[nodiscard]] std::string load();
  std::string failed(const char* call, CUptiResult code) const;
  ClockPair clocks() const;
  void disable() const;

  SharedLibrary library_;
  Cupti cupti_;
  ClockPair first_;
  std::mutex mutex_;                     // guards the two below
  std::vector<GpuActivity> activities_;  ///< since start()
  std::size_t dropped_ = 0;              ///< number of records for which CUPTI had no room
};

}  // namespace lockstep::device
