# An optimizer is one file, src/optim/optimizers/<name>.hpp, which CPU and GPU compile: it defines
# `ElementwiseOptimizer<Formula> lockstep::optim::make_<name>()`. A schedule is one file, src/optim/schedules/<name>.cpp:
# it defines `lockstep::ScheduleDef lockstep::optim::make_<name>()`. The lists of them are written here, so that adding
# one touches nothing outside its file.
file(GLOB OPTIMIZER_FILES CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/src/optim/optimizers/*.hpp)
set(INCLUDES "")
set(VISITS "")
foreach(FILE ${OPTIMIZER_FILES})
  get_filename_component(NAME ${FILE} NAME_WE)
  string(APPEND INCLUDES "#include \"${FILE}\"\n")
  string(APPEND VISITS "  visit(\"${NAME}\", make_${NAME});\n")
endforeach()
set(LOCKSTEP_OPTIM_HEADERS ${CMAKE_BINARY_DIR}/generated/optim)
file(CONFIGURE OUTPUT ${LOCKSTEP_OPTIM_HEADERS}/optimizer_list.hpp CONTENT
"// The optimizers of src/optim/optimizers.
#pragma once

${INCLUDES}
namespace lockstep::optim {

/// visit(name, make): make() returns the optimizer.
template <class Visit>
void for_each_optimizer(const Visit& visit) {
${VISITS}}

}  // namespace lockstep::optim
")

file(GLOB SCHEDULE_FILES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/optim/schedules/*.cpp)
include(${CMAKE_CURRENT_LIST_DIR}/FunctionList.cmake)
lockstep_function_list("" "ScheduleDef make_@NAME@()" "registry.add(make_@NAME@())" ${SCHEDULE_FILES})
set(LOCKSTEP_SCHEDULE_LIST ${CMAKE_BINARY_DIR}/generated/schedule_list.cpp)
file(CONFIGURE OUTPUT ${LOCKSTEP_SCHEDULE_LIST} CONTENT
"#include \"optim/registry.hpp\"

namespace lockstep::optim {

${DECLARATIONS}
void add_built_in(ScheduleRegistry& registry) {
${CALLS}}

}  // namespace lockstep::optim
")
