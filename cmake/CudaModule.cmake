# liblockstep_cuda.so: device/cuda, the ops' GPU kernels (ops/*/*_cuda.cu) and the NCCL communicator. Loaded at run
# time by the program, which it lies beside. Included from src/.
#
# It takes the rooms it needs as static libraries, hidden, and nothing from the program: rooms have no globals, so the
# copies are of code only (tests/cuda/module_test.py holds that), and any program may load it without linking for it.
file(GLOB CUDA_KERNELS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/*/*_cuda.cu)
# Where there is only <op>/<op>_grid.hpp, <op>_cuda.cu is written here.
file(GLOB OP_GRIDS CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/src/ops/*/*_grid.hpp)
foreach(GRID ${OP_GRIDS})
  if(NOT GRID MATCHES "ops/([a-z0-9_]+)/([a-z0-9_]+)_grid.hpp" OR NOT CMAKE_MATCH_1 STREQUAL CMAKE_MATCH_2)
    continue()
  endif()
  set(OP ${CMAKE_MATCH_1})
  if(EXISTS ${CMAKE_SOURCE_DIR}/src/ops/${OP}/${OP}_cuda.cu)
    continue()
  endif()
  set(KERNEL ${CMAKE_BINARY_DIR}/generated/ops/${OP}_cuda.cu)
  file(CONFIGURE OUTPUT ${KERNEL} CONTENT
"#include \"device/cuda/cuda_grid.cuh\"
#include \"${GRID}\"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_${OP}_cuda(const KernelRequest& request) {
  return make_${OP}_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
")
  list(APPEND CUDA_KERNELS ${KERNEL})
endforeach()
include(${CMAKE_CURRENT_LIST_DIR}/FunctionList.cmake)
lockstep_op_names(CUDA_NAMES ${CUDA_KERNELS})
list(SORT CUDA_NAMES)
lockstep_function_list(_cuda "std::unique_ptr<Kernel> make_@NAME@_cuda(const KernelRequest& request)"
  "registry.add_kernel(\"@NAME@\", DeviceKind::cuda, make_@NAME@_cuda, true)" ${CUDA_NAMES})
set(LOCKSTEP_CUDA_LIST ${CMAKE_BINARY_DIR}/generated/cuda_list.cpp)
file(CONFIGURE OUTPUT ${LOCKSTEP_CUDA_LIST} CONTENT
"#include \"lockstep/op.hpp\"

namespace lockstep::ops {

${DECLARATIONS}
}  // namespace lockstep::ops

extern \"C\" __attribute__((visibility(\"default\"))) void lockstep_cuda_register(lockstep::OpRegistry& registry) {
  using namespace lockstep;
  using namespace lockstep::ops;
${CALLS}}
")

file(GLOB CUDA_SOURCES CONFIGURE_DEPENDS device/cuda/*.cpp device/cuda/*.cu comm/transport/nccl_*.cpp
  optim/*_cuda.cu input/*_cuda.cu)
add_library(lockstep_cuda MODULE ${CUDA_SOURCES} ${CUDA_KERNELS} ${LOCKSTEP_CUDA_LIST})
set_target_properties(lockstep_cuda PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}
  UNITY_BUILD OFF  # its own clashes of names would cost more than its few sources of C++ save
  CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
  # CUDA's libraries are looked for beside it, then as the system says.
  INSTALL_RPATH "$ORIGIN;$ORIGIN/cuda")
# Equal bits: no multiply-add may be contracted, as on the CPU (cmake/Warnings.cmake). Relaxed constexpr: Philox is
# constexpr in a public header, which knows nothing of GPUs.
target_compile_options(lockstep_cuda PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:--fmad=false;--expt-relaxed-constexpr;-Werror=all-warnings>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers,-Werror,-ffp-contract=off>")
target_include_directories(lockstep_cuda PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src
  ${LOCKSTEP_OPTIM_HEADERS})
target_include_directories(lockstep_cuda SYSTEM PRIVATE ${CUDNN_INCLUDE_DIR} ${NCCL_INCLUDE_DIR})
# The rooms come as archives, without the libraries that they need on the CPU: what calls those is not taken.
set(ROOM_ARCHIVES)
foreach(ROOM ops graph comm_transport device core)
  list(APPEND ROOM_ARCHIVES $<TARGET_FILE:lockstep_${ROOM}>)
  add_dependencies(lockstep_cuda lockstep_${ROOM})
endforeach()
target_link_libraries(lockstep_cuda PRIVATE lockstep_flags -Wl,--start-group ${ROOM_ARCHIVES} -Wl,--end-group
  fmt::fmt Threads::Threads ${CMAKE_DL_LIBS} CUDA::cudart CUDA::cublasLt ${CUDNN_LIBRARY} ${NCCL_LIBRARY} CUDA::nvrtc)
# Every symbol must be found when linking, none of the rooms' is visible, what the module does not use of them is left
# out, and no library is needed that is not used.
set(MAP ${CMAKE_CURRENT_LIST_DIR}/cuda_module.map)
target_link_options(lockstep_cuda PRIVATE -Wl,-z,defs -Wl,--gc-sections -Wl,--version-script=${MAP} -Wl,--as-needed)
set_target_properties(lockstep_cuda PROPERTIES LINK_DEPENDS "${MAP};${ROOM_ARCHIVES}")
add_dependencies(lockstep lockstep_cuda)
install(TARGETS lockstep_cuda LIBRARY DESTINATION lib/lockstep COMPONENT program)
