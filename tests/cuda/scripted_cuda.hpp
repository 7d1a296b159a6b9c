// CUDA's runtime, cuBLASLt and cuDNN as far as CudaGpu and LtProduct call them, for tests without a GPU: each call is
// recorded and answered as the test says. Linked instead of the libraries.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <map>
#include <string>
#include <vector>

namespace lockstep {

/// An algorithm that cublasLtMatmulAlgoGetHeuristic proposes.
struct ScriptedAlgorithm {
  int id = 0;
  int split_k = 1;
  std::uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_NONE;
  std::size_t workspace = 0;
  bool taken = true;  ///< accepted by cublasLtMatmulAlgoCheck
};

struct ScriptedCuda {
  std::vector<std::string> calls;      ///< names, in order; without those that only query
  std::map<std::string, int> answers;  ///< by name: what the function returns from now on; default: success
  std::map<std::string, int> alive;    ///< by kind of object
  int last_error = 0;                  ///< what cudaGetLastError would say
  std::vector<ScriptedAlgorithm> proposed;
  cublasStatus_t proposes = CUBLAS_STATUS_SUCCESS;
  int multiplied_by = 0;  ///< the algorithm's id
};

/// The current test's, on which the functions act. Each test makes a new one.
ScriptedCuda& scripted_cuda();
void begin_script();

}  // namespace lockstep
