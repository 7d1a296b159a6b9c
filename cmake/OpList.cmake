# An op is one folder: src/ops/<name>/<name>_op.cpp defines `lockstep::OpDef lockstep::ops::make_<name>()`.
# (The folder activations holds several.) The list of them is written here, so that adding an op touches nothing
# outside its folder.
file(GLOB OP_FILES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/*/*_op.cpp)
include(${CMAKE_CURRENT_LIST_DIR}/FunctionList.cmake)
lockstep_op_names(OP_NAMES ${OP_FILES})
lockstep_function_list(_op "OpDef make_@NAME@()" "registry.add(make_@NAME@())" ${OP_NAMES})
set(LOCKSTEP_OP_LIST ${CMAKE_BINARY_DIR}/generated/op_list.cpp)
file(CONFIGURE OUTPUT ${LOCKSTEP_OP_LIST} CONTENT
"#include \"ops/registry.hpp\"

namespace lockstep::ops {

${DECLARATIONS}
void add_built_in(OpRegistry& registry) {
${CALLS}}

}  // namespace lockstep::ops
")
