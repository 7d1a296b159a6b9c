# cmake -D SOURCE=src -D LISTS=folder -D KERNEL_UNITS=n -D OPS_TEST=program -P WriteLists.cmake
# Writes what Lists.cmake describes. A file whose text stays the same is left as it is, and so is what was made of it.

# names_in(OUT DEFINITION file...): the names, in place of @, of what these files define. What uses the table
# LOCKSTEP_ACTIVATIONS defines that for each activation. A file without any is an error, and so is a definition whose
# line begins like these but goes on otherwise: the list would lose it silently.
function(names_in OUT DEFINITION)
  string(REPLACE "@" "([a-z0-9_]+)" PATTERN "${DEFINITION}")
  string(REGEX REPLACE "^\n(.*)\\\\\\(.*$" "\n([A-Za-z][^\n;]* )?\\1\\\\([^\n;]*" ALIKE "${PATTERN}")
  set(NAMES "")
  foreach(FILE ${ARGN})
    file(READ ${FILE} TEXT)
    string(REGEX MATCHALL "${ALIKE}" FOUND "${TEXT}")
    foreach(ONE IN LISTS FOUND)
      string(STRIP "${ONE}" LINE)
      if(NOT ONE MATCHES "^${PATTERN}$")
        message(FATAL_ERROR "${FILE}: expected a definition as in 'cmake/WriteLists.cmake', found '${LINE}'")
      endif()
    endforeach()
    if(NOT FOUND AND NOT TEXT MATCHES "\nLOCKSTEP_ACTIVATIONS\\(")
      string(STRIP "${DEFINITION}" EXPECTED)
      message(FATAL_ERROR "${FILE}: expected '${EXPECTED}', found none; define it, or rename the file")
    endif()
    string(REGEX MATCHALL "${PATTERN}" FOUND "${TEXT}")
    foreach(ONE IN LISTS FOUND)
      string(REGEX REPLACE "${PATTERN}" "\\1" NAME "${ONE}")
      list(APPEND NAMES ${NAME})
    endforeach()
    if(TEXT MATCHES "\nLOCKSTEP_ACTIVATIONS\\(")
      list(APPEND NAMES ${ACTIVATIONS})
    endif()
  endforeach()
  list(SORT NAMES)
  list(REMOVE_DUPLICATES NAMES)
  set(${OUT} ${NAMES} PARENT_SCOPE)
endfunction()

# lines(OUT LINE name...): the line for each name, in place of @.
function(lines OUT LINE)
  set(ALL "")
  foreach(NAME ${ARGN})
    string(REPLACE "@" "${NAME}" ONE "${LINE}")
    string(APPEND ALL "${ONE}\n")
  endforeach()
  set(${OUT} "${ALL}" PARENT_SCOPE)
endfunction()

# write(FILE NAMESPACE INCLUDES TEXT)
function(write FILE NAMESPACE INCLUDES TEXT)
  file(CONFIGURE OUTPUT ${LISTS}/${FILE} @ONLY
    CONTENT "${INCLUDES}\nnamespace lockstep::${NAMESPACE} {\n\n${TEXT}\n}  // namespace lockstep::${NAMESPACE}\n")
endfunction()

# write_registry(FILE NAMESPACE INCLUDES KIND THEN MORE pattern): add_built_in() of a KINDRegistry, which adds each make_@()
# of these sources (THEN is applied to what it adds), and MORE.
function(write_registry FILE NAMESPACE INCLUDES KIND THEN MORE PATTERN)
  file(GLOB FILES ${SOURCE}/${PATTERN})
  names_in(NAMES "\n${KIND}Def make_@\\(\\) {" ${FILES})
  lines(DECLARATIONS "${KIND}Def make_@();" ${NAMES})
  lines(CALLS "  registry.add(make_@())${THEN};" ${NAMES})
  write(${FILE} ${NAMESPACE} "${INCLUDES}" "${DECLARATIONS}
void add_built_in(${KIND}Registry& registry) {
${CALLS}}
${MORE}")
endfunction()

names_in(ACTIVATIONS "USE\\([A-Z][A-Za-z0-9]*, @\\)" ${SOURCE}/ops/activations/activations.hpp)

write_registry(ops.cpp ops "#include \"ops/registry.hpp\"\n" Op "" "" ops/*/*_op.cpp)

set(FILES "")
file(GLOB OP_FILES ${SOURCE}/ops/*/*_op.cpp)
foreach(FILE ${OP_FILES})
  file(READ ${FILE} TEXT)
  if(TEXT MATCHES "\nvoid [a-z0-9_]+_to_onnx")
    list(APPEND FILES ${FILE})
  endif()
endforeach()
names_in(NAMES "\nvoid @_to_onnx\\(OnnxScope& scope\\) {" ${FILES})
lines(DECLARATIONS "void @_to_onnx(OnnxScope& scope);" ${NAMES})
lines(ENTRIES "      {\"@\", @_to_onnx}," ${NAMES})
write(onnx.cpp ops "#include \"ops/onnx_scope.hpp\"\n" "${DECLARATIONS}
const std::map<std::string, OnnxFunction>& onnx_functions() {
  static const std::map<std::string, OnnxFunction> kFunctions = {
${ENTRIES}  };
  return kFunctions;
}
")

file(GLOB FILES ${SOURCE}/ops/*/*_cases.cpp)
names_in(NAMES "\nOpCases make_@_cases\\(\\) {" ${FILES})
lines(DECLARATIONS "OpCases make_@_cases();" ${NAMES})
lines(CALLS "  list.push_back(make_@_cases());" ${NAMES})
write(cases.cpp ops "#include \"ops/op_driver.hpp\"\n" "${DECLARATIONS}
std::vector<OpCases> all_cases() {
  std::vector<OpCases> list;
${CALLS}  return list;
}
")
# For ctest, one entry an op.
lines(TESTS "add_test(ops.@ \"${OPS_TEST}\" \"--gtest_filter=*/@__*\")\nset_tests_properties(ops.@ PROPERTIES LABELS ops)"
  ${NAMES})
file(CONFIGURE OUTPUT ${LISTS}/op_tests.cmake CONTENT "${TESTS}" @ONLY)

# Kernels over a Grid: for tests over HostGrid, all in one list.
file(GLOB GRIDS RELATIVE ${SOURCE} ${SOURCE}/ops/*/*_grid.hpp)
list(TRANSFORM GRIDS PREPEND ${SOURCE}/ OUTPUT_VARIABLE FILES)
names_in(NAMES "\nstd::unique_ptr<Kernel> make_@_grid\\(const KernelRequest& request\\) {" ${FILES})
lines(INCLUDES "#include \"@\"" ${GRIDS})
lines(ENTRIES "      {\"@\", make_@_grid<device::HostGrid>}," ${NAMES})
write(grids.cpp ops "${INCLUDES}#include \"ops/op_driver.hpp\"\n" "std::map<std::string, KernelFactory> host_grid_kernels() {
  return {
${ENTRIES}  };
}
")

# For GPUs over CudaGrid, in some units, but for the ops that have a _cuda.cu of their own.
file(GLOB FILES ${SOURCE}/ops/*/*_cuda.cu)
names_in(CUDA_NAMES "\nstd::unique_ptr<Kernel> make_@_cuda\\(const KernelRequest& request\\) {" ${FILES})
set(OWN ${CUDA_NAMES})
set(UNIT 0)
foreach(GRID ${GRIDS})
  names_in(NAMES "\nstd::unique_ptr<Kernel> make_@_grid\\(const KernelRequest& request\\) {" ${SOURCE}/${GRID})
  list(REMOVE_ITEM NAMES ${OWN})
  if(NAMES)
    math(EXPR UNIT "${UNIT} % ${KERNEL_UNITS} + 1")
    list(APPEND CUDA_NAMES ${NAMES})
    list(APPEND NAMES_${UNIT} ${NAMES})
    list(APPEND GRIDS_${UNIT} ${GRID})
  endif()
endforeach()
foreach(UNIT RANGE 1 ${KERNEL_UNITS})
  lines(INCLUDES "#include \"@\"" ${GRIDS_${UNIT}})
  lines(KERNELS "std::unique_ptr<Kernel> make_@_cuda(const KernelRequest& request) {
  return make_@_grid<device::CudaGrid>(request);
}" ${NAMES_${UNIT}})
  write(kernels_${UNIT}.cu ops "#include \"device/cuda/cuda_grid.cuh\"\n${INCLUDES}" "${KERNELS}")
endforeach()
list(SORT CUDA_NAMES)
lines(DECLARATIONS "std::unique_ptr<Kernel> make_@_cuda(const KernelRequest& request);" ${CUDA_NAMES})
lines(CALLS "  registry.add_kernel(\"@\", DeviceKind::cuda, make_@_cuda, true, true);" ${CUDA_NAMES})
write(cuda.cpp ops "#include \"lockstep/op.hpp\"\n" "${DECLARATIONS}
extern \"C\" __attribute__((visibility(\"default\"))) void lockstep_cuda_register(OpRegistry& registry) {
${CALLS}}
")

file(GLOB FILES RELATIVE ${SOURCE} ${SOURCE}/step/optim/optimizers/*.hpp)
lines(INCLUDES "#include \"@\"" ${FILES})
list(TRANSFORM FILES PREPEND ${SOURCE}/)
names_in(NAMES "\ninline [A-Za-z]*Optimizer[A-Za-z<>]* make_@\\(\\) {" ${FILES})
lines(VISITS "  visit(\"@\", make_@);" ${NAMES})
write(optimizer_list.hpp optim "#pragma once\n\n${INCLUDES}" "/// visit(name, make) for each optimizer: make() returns it.
template <class Visit>
void for_each_optimizer(const Visit& visit) {
${VISITS}}
")

write_registry(optim.cpp optim "#include <optimizer_list.hpp>\n\n#include \"step/optim/registry.hpp\"\n" Schedule "" "
void add_built_in(OptimizerRegistry& registry) {
  for_each_optimizer([&](const char* /*name*/, const auto& make) { registry.add(make()); });
}
" step/optim/schedules/*.cpp)
write_registry(models.cpp models "#include \"graph/zoo.hpp\"\n" Model "" "" graph/models/*.cpp)
write_registry(augmentations.cpp data "#include \"lockstep/augment.hpp\"\n" Augment ".masks = true" "" data/augment_steps/*.cpp)
