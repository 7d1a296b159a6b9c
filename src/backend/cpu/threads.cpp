#include <omp.h>

#include "backend/device.hpp"

namespace lockstep::backend {

void use_one_thread_per_kernel() { omp_set_num_threads(1); }

}  // namespace lockstep::backend
