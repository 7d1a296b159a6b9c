# The foreign libraries behind the rooms. Both the build and the installed package (lockstepConfig.cmake) read
# this list: lockstep_find is find_package in the one and find_dependency in the other.
list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR})
lockstep_find(Threads)
lockstep_find(OpenMP COMPONENTS CXX)  # the threads under oneDNN, which kernels set to one
lockstep_find(MPI COMPONENTS CXX)
lockstep_find(yaml-cpp)
lockstep_find(nlohmann_json)
lockstep_find(fmt)
lockstep_find(OpenSSL COMPONENTS Crypto)
lockstep_find(JPEG)
lockstep_find(PNG)
lockstep_find(LibArchive)
lockstep_find(CURL)
lockstep_find(pugixml)
lockstep_find(ZLIB)
lockstep_find(PCRE2)
lockstep_find(prometheus-cpp)
lockstep_find(Protobuf)
lockstep_find(oneDNN)
# yaml-cpp 0.7 exports `yaml-cpp`, 0.8 `yaml-cpp::yaml-cpp`.
if(TARGET yaml-cpp AND NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()
