# Finds oneDNN without its own CMake package: Debian 12's wants the OpenCL headers of a GPU part that nobody here
# uses. Defines oneDNN::oneDNN and oneDNN_VERSION.
find_path(oneDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(oneDNN_LIBRARY dnnl)
mark_as_advanced(oneDNN_INCLUDE_DIR oneDNN_LIBRARY)
if(oneDNN_INCLUDE_DIR)
  file(STRINGS ${oneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h oneDNN_VERSION REGEX "^#define DNNL_VERSION_[MP]")
  string(REGEX REPLACE "[^0-9;]" "" oneDNN_VERSION "${oneDNN_VERSION}")
  list(JOIN oneDNN_VERSION "." oneDNN_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(oneDNN REQUIRED_VARS oneDNN_LIBRARY oneDNN_INCLUDE_DIR VERSION_VAR oneDNN_VERSION)
if(oneDNN_FOUND AND NOT TARGET oneDNN::oneDNN)
  add_library(oneDNN::oneDNN UNKNOWN IMPORTED)
  set_target_properties(oneDNN::oneDNN PROPERTIES IMPORTED_LOCATION ${oneDNN_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${oneDNN_INCLUDE_DIR})
endif()
