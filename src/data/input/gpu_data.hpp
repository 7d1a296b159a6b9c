// Which of a run's data sets are kept on the ranks' GPUs: either all ranks keep a set or none does. The bits are the
// same.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/input/gpu_data_set.hpp"
#include "data/input/prepared_data.hpp"
#include "step/exec/gpu_device.hpp"
#include "step/exec/memory_needs.hpp"

namespace lockstep::input {

struct GpuData {
  std::shared_ptr<const GpuDataSet> train, validation;  ///< null: the host prepares the inputs
  std::size_t left = 0;                                 ///< bytes of the GPU that neither the data nor anything else
                                                        ///< needs
  std::string summary;  ///< "train made on the GPU (9.2 MB), validation on the host: ..."; empty: it was not requested
};

// Needs that data on the GPU increase: the numbers drawn for a micro-batch are stored beside the inputs made from them.
inline constexpr const char* kInputsOfTraining = "inputs";  // the name in exec::Executor
inline constexpr const char* kInputsOfEvaluations = "inputs of evaluations";

/// What else the GPU's memory is needed for.
struct GpuRoom {
  std::vector<exec::MemoryNeed> needs;  ///< of everything that will be allocated besides the data
  int workers = 1;
  bool for_data = true;  ///< false: the host prepares all inputs
};

/// Collective, each rank with its GPU, before anything in `needs` is allocated. Throws Error(configuration) with a
/// table if the needs do not fit or, if the job says `cache: device`, if the data cannot be kept there.
[[nodiscard]] GpuData put_gpu_data(const JobFile& job, Communicator& communicator, const exec::GpuDevice& device,
                                   const PreparedData& data, const Graph& graph, bool with_validation,
                                   const GpuRoom& room);

}  // namespace lockstep::input
