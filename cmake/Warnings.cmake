# Flags that every target has. -ffp-contract=off is part of the promise: a fused multiply-add chosen by the
# compiler in one loop body and not in its tail would change bits.
add_library(lockstep_flags INTERFACE)
target_compile_options(lockstep_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror
  -ffp-contract=off -fno-math-errno)
if(LOCKSTEP_SANITIZE STREQUAL "address")
  target_compile_options(lockstep_flags INTERFACE -fsanitize=address,undefined -fno-omit-frame-pointer)
  target_link_options(lockstep_flags INTERFACE -fsanitize=address,undefined)
elseif(LOCKSTEP_SANITIZE STREQUAL "thread")
  target_compile_options(lockstep_flags INTERFACE -fsanitize=thread)
  target_link_options(lockstep_flags INTERFACE -fsanitize=thread)
elseif(NOT LOCKSTEP_SANITIZE STREQUAL "")
  message(FATAL_ERROR "LOCKSTEP_SANITIZE is '${LOCKSTEP_SANITIZE}'; expected address or thread")
endif()
