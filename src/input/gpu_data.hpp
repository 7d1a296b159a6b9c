// Which of a run's data sets are kept on the ranks' GPUs. Either all ranks keep one or none does, and the bits are the
// same.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exec/gpu_device.hpp"
#include "exec/memory_needs.hpp"
#include "input/gpu_data_set.hpp"
#include "input/prepared_data.hpp"

namespace lockstep::input {

struct GpuData {
  std::shared_ptr<const GpuDataSet> train, validation;  ///< null: the host makes the inputs
  std::size_t left = 0;                                 ///< bytes of the GPU that neither they nor anything else needs
  std::string summary;  ///< "train made on the GPU (9.2 MB), validation on the host: ..."; empty: nobody asked for it
};

// Needs that data kept on the GPU add to: a shard's inputs are made of what is drawn for it, which lies beside them.
inline constexpr const char* kInputsOfTraining = "inputs";  // as exec::Executor calls it
inline constexpr const char* kInputsOfEvaluations = "inputs of evaluations";

/// What else is on the GPU.
struct GpuRoom {
  std::vector<exec::MemoryNeed> needs;  ///< of all that will be allocated beside the data
  int workers = 1;
  bool for_data = true;  ///< false: the host makes all inputs
};

/// Every rank calls it, each on a GPU, before anything of the needs is there. Throws Error(configuration), with a
/// table, where they do not fit; and where the job says `cache: device`, also if the data cannot be kept there.
[[nodiscard]] GpuData put_gpu_data(const JobFile& job, Communicator& communicator, const exec::GpuDevice& device,
                                   const PreparedData& data, const Graph& graph, bool with_validation,
                                   const GpuRoom& room);

}  // namespace lockstep::input
