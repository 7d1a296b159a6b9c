# An op is one folder: src/ops/<name>/<name>_op.cpp defines `lockstep::OpDef lockstep::ops::make_<name>()`.
# The list of them is written here, so that adding an op touches nothing outside its folder.
file(GLOB OP_FILES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/*/*_op.cpp)
set(DECLARATIONS "")
set(CALLS "")
foreach(FILE ${OP_FILES})
  get_filename_component(STEM ${FILE} NAME_WE)
  string(REGEX REPLACE "_op$" "" OP ${STEM})
  string(APPEND DECLARATIONS "OpDef make_${OP}();\n")
  string(APPEND CALLS "  registry.add(make_${OP}());\n")
endforeach()
set(LOCKSTEP_OP_LIST ${CMAKE_BINARY_DIR}/generated/op_list.cpp)
file(CONFIGURE OUTPUT ${LOCKSTEP_OP_LIST} CONTENT
"#include \"ops/registry.hpp\"

namespace lockstep::ops {

${DECLARATIONS}
void add_built_in(OpRegistry& registry) {
${CALLS}}

}  // namespace lockstep::ops
")
