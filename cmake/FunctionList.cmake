# lockstep_function_list(SUFFIX DECLARATION CALL file...)
# For each file <name>SUFFIX.*: the lines DECLARATION and CALL, with its name in place of @NAME@. Sets what a generated
# source needs to call them all: DECLARATIONS, and CALLS. NAMES are theirs.
function(lockstep_function_list SUFFIX DECLARATION CALL)
  set(DECLARATIONS "")
  set(CALLS "")
  set(NAMES "")
  foreach(FILE ${ARGN})
    get_filename_component(STEM ${FILE} NAME_WE)
    string(REGEX REPLACE "^(.+)${SUFFIX}$" "\\1" NAME ${STEM})
    string(REPLACE "@NAME@" ${NAME} LINE "${DECLARATION}")
    string(APPEND DECLARATIONS "${LINE};\n")
    string(REPLACE "@NAME@" ${NAME} LINE "${CALL}")
    string(APPEND CALLS "  ${LINE};\n")
    list(APPEND NAMES ${NAME})
  endforeach()
  set(DECLARATIONS "${DECLARATIONS}" PARENT_SCOPE)
  set(CALLS "${CALLS}" PARENT_SCOPE)
  set(NAMES "${NAMES}" PARENT_SCOPE)
endfunction()

# ops/activations/activations.hpp is a table of several ops: ACTIVATIONS are their names.
file(READ ${CMAKE_SOURCE_DIR}/src/ops/activations/activations.hpp ACTIVATIONS)
string(REGEX MATCHALL "USE\\([A-Z][A-Za-z0-9]*, [a-z0-9_]+\\)" ACTIVATIONS "${ACTIVATIONS}")
list(TRANSFORM ACTIVATIONS REPLACE ".*, ([a-z0-9_]+)\\)" "\\1")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/activations/activations.hpp)

# lockstep_op_names(OUT file...): what lockstep_function_list() is to be given for these files of ops.
function(lockstep_op_names OUT)
  set(FILES ${ARGN})
  list(FILTER FILES EXCLUDE REGEX "/activations_[a-z]+\\.")
  set(${OUT} ${FILES} ${ACTIVATIONS} PARENT_SCOPE)
endfunction()
