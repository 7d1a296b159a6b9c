# An op is one folder: src/ops/<name>/<name>_op.cpp defines `lockstep::OpDef lockstep::ops::make_<name>()`.
# The list of them is written here, so that adding an op touches nothing outside its folder.
file(GLOB OP_FILES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/*/*_op.cpp)
include(${CMAKE_CURRENT_LIST_DIR}/FunctionList.cmake)
lockstep_function_list(_op "OpDef make_@NAME@()" "registry.add(make_@NAME@())" ${OP_FILES})
set(LOCKSTEP_OP_LIST ${CMAKE_BINARY_DIR}/generated/op_list.cpp)
file(CONFIGURE OUTPUT ${LOCKSTEP_OP_LIST} CONTENT
"#include \"ops/registry.hpp\"

namespace lockstep::ops {

${DECLARATIONS}
void add_built_in(OpRegistry& registry) {
${CALLS}}

}  // namespace lockstep::ops
")
