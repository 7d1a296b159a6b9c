// Built instead of gemm_avx512.cpp and gemm_avx2.cpp for other processors than x86.
#include "device/cpu/gemm_tiles.hpp"

namespace lockstep::device {

GemmTiles gemm_tiles_avx512() {
  return gemm_tiles_portable();
}

GemmTiles gemm_tiles_avx2() {
  return gemm_tiles_portable();
}

}  // namespace lockstep::device
