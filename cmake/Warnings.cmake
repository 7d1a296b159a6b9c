# Flags that every target has. -ffp-contract=off is part of the promise: a fused multiply-add chosen by the
# compiler in one loop body and not in its tail would change bits.
add_library(lockstep_flags INTERFACE)
function(lockstep_flags_of_cxx)
  foreach(FLAG ${ARGN})
    target_compile_options(lockstep_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${FLAG}>)
  endforeach()
endfunction()
# A warning is an error with the compilers that were seen to give none; a newer one's new warnings stop nobody's build.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15)
  set(WARNINGS_ARE_ERRORS -Werror)
endif()
lockstep_flags_of_cxx(
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wno-missing-field-initializers ${WARNINGS_ARE_ERRORS}
  -ffp-contract=off -fno-math-errno
  -ffunction-sections -fdata-sections)  # the CUDA module takes what it uses of a room, and no more (CudaModule.cmake)
# g++ 12 sees overlaps in std::string where there are none (GCC bug 105651, mended in 13).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  lockstep_flags_of_cxx(-Wno-restrict)
endif()
# g++ takes the sources of a unity build for headers, where a member of a type of an anonymous namespace would be wrong.
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  lockstep_flags_of_cxx(-Wno-subobject-linkage)
endif()
if(LOCKSTEP_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 then takes the members of a std::variant that are not in use for uninitialised ones, and copies of no bytes
  # for reads beyond an array.
  lockstep_flags_of_cxx(-Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow)
endif()
# What no hot loop stands in is compiled with -O1 for a release, in two thirds of the time that -O3 takes. g++ then takes
# values of std::optional that are not there for uninitialised ones.
set(LOCKSTEP_COLD $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND LOCKSTEP_COLD $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-Wno-maybe-uninitialized>)
endif()
if(LOCKSTEP_SANITIZE STREQUAL "address")
  lockstep_flags_of_cxx(-fsanitize=address,undefined -fno-omit-frame-pointer)
  target_link_options(lockstep_flags INTERFACE -fsanitize=address,undefined)
elseif(LOCKSTEP_SANITIZE STREQUAL "thread")
  lockstep_flags_of_cxx(-fsanitize=thread)
  target_link_options(lockstep_flags INTERFACE -fsanitize=thread)
elseif(LOCKSTEP_SANITIZE STREQUAL "fuzz")
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "LOCKSTEP_SANITIZE=fuzz needs clang, whose libFuzzer it uses: cmake --preset fuzz")
  endif()
  set(FUZZ_SANITIZERS -fsanitize=address,undefined)
  lockstep_flags_of_cxx(-fsanitize=fuzzer-no-link ${FUZZ_SANITIZERS}
    -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(lockstep_flags INTERFACE -fsanitize=fuzzer ${FUZZ_SANITIZERS})
elseif(NOT LOCKSTEP_SANITIZE STREQUAL "")
  message(FATAL_ERROR "LOCKSTEP_SANITIZE is '${LOCKSTEP_SANITIZE}'; expected address, thread or fuzz")
endif()
