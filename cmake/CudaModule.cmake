# liblockstep_cuda.so: device/cuda, the ops' GPU kernels (ops/*/*_grid.hpp, *_cuda.cu) and the NCCL communicator. Loaded at run
# time by the program, which it lies beside. Included from src/.
#
# It takes the rooms it needs as static libraries, hidden, and nothing from the program: rooms have no globals, so the
# copies are of code only (tests/cuda/module_test.py holds that), and any program may load it without linking for it.
file(GLOB CUDA_SOURCES CONFIGURE_DEPENDS device/cuda/*.cpp device/cuda/*.cu ops/*/*_cuda.cu
  comm/transport/nccl_*.cpp step/optim/*_cuda.cu data/input/*_cuda.cu)
add_library(lockstep_cuda MODULE ${CUDA_SOURCES} ${KERNEL_UNITS} ${LOCKSTEP_LISTS}/cuda.cpp)
set_target_properties(lockstep_cuda PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}
  UNITY_BUILD OFF  # its own clashes of names would cost more than its few sources of C++ save
  CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
  # CUDA's libraries are looked for beside it, then as the system says.
  INSTALL_RPATH "$ORIGIN;$ORIGIN/cuda")
# Equal bits: no multiply-add may be contracted, as on the CPU (cmake/Warnings.cmake). Relaxed constexpr: Philox is
# constexpr in a public header, which knows nothing of GPUs.
add_library(lockstep_cuda_flags INTERFACE)
target_compile_options(lockstep_cuda_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CUDA>:--fmad=false;--expt-relaxed-constexpr;-Werror=all-warnings>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers,-Werror,-ffp-contract=off>")
target_include_directories(lockstep_cuda PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src
  ${LOCKSTEP_LISTS})
target_include_directories(lockstep_cuda SYSTEM PRIVATE ${CUDNN_INCLUDE_DIR} ${NCCL_INCLUDE_DIR})
# The rooms come as archives, without the libraries that they need on the CPU: what calls those is not taken.
set(ROOM_ARCHIVES)
foreach(ROOM ops graph transport device core)
  list(APPEND ROOM_ARCHIVES $<TARGET_FILE:lockstep_${ROOM}>)
  add_dependencies(lockstep_cuda lockstep_${ROOM})
endforeach()
target_link_libraries(lockstep_cuda PRIVATE lockstep_flags lockstep_cuda_flags -Wl,--start-group ${ROOM_ARCHIVES} -Wl,--end-group
  fmt::fmt Threads::Threads ${CMAKE_DL_LIBS} CUDA::cudart CUDA::cublasLt ${CUDNN_LIBRARY} ${NCCL_LIBRARY} CUDA::nvrtc)
# Every symbol must be found when linking, none of the rooms' is visible, what the module does not use of them is left
# out, and no library is needed that is not used.
set(MAP ${CMAKE_CURRENT_LIST_DIR}/cuda_module.map)
target_link_options(lockstep_cuda PRIVATE -Wl,-z,defs -Wl,--gc-sections -Wl,--version-script=${MAP} -Wl,--as-needed)
set_target_properties(lockstep_cuda PROPERTIES LINK_DEPENDS "${MAP};${ROOM_ARCHIVES}")
add_dependencies(lockstep lockstep_cuda)
install(TARGETS lockstep_cuda LIBRARY DESTINATION lib/lockstep COMPONENT program)
