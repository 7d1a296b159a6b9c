// CUDA's runtime, cuBLASLt and cuDNN as far as CudaGpu and LtProduct call them, for tests of these without a GPU: each
// call is noted, and answers what the test says. Linked in the libraries' place.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <map>
#include <string>
#include <vector>

namespace lockstep {

/// Of an algorithm that cublasLtMatmulAlgoGetHeuristic proposes.
struct ScriptedAlgorithm {
  int id = 0;
  int split_k = 1;
  std::uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_NONE;
  std::size_t workspace = 0;
  bool taken = true;  ///< by cublasLtMatmulAlgoCheck
};

struct ScriptedCuda {
  std::vector<std::string> calls;      ///< by name, in their order; not those that only ask
  std::map<std::string, int> answers;  ///< by name: what it returns from now on, else success
  std::map<std::string, int> alive;    ///< by kind of object
  int last_error = 0;                  ///< what cudaGetLastError would say
  std::vector<ScriptedAlgorithm> proposed;
  cublasStatus_t proposes = CUBLAS_STATUS_SUCCESS;
  int multiplied_by = 0;  ///< the algorithm's id
};

/// The test's; the functions know no other. A new one for each test.
ScriptedCuda& scripted_cuda();
void begin_script();

}  // namespace lockstep
