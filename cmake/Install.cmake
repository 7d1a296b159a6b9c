# cmake --install BUILD --prefix P, find_package(lockstep) and the tarball (cpack -G TGZ).
#
#   bin/lockstep                     the program
#   include/lockstep, lib            public headers, static libraries, one for each folder of a room
#   lib/cmake/lockstep               the CMake package
#   share/lockstep                   examples and data files that users may edit; helm: charts, rules and dashboards
#   share/doc/lockstep               documentation
# Nothing of ours holds an absolute path, so the tree may be moved. Foreign libraries are the system's. What it takes to use
# the program, without the means to write others, is the component `program`.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # the tests need not be built
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(ROOMS core config telemetry store data device graph transport reduce ops exec balance optim input checkpoint observe plan train formats launch)
set(ROOM_TARGETS ${ROOMS})
list(TRANSFORM ROOM_TARGETS PREPEND lockstep_)
foreach(ROOM ${ROOMS})
  set_target_properties(lockstep_${ROOM} PROPERTIES EXPORT_NAME ${ROOM})
endforeach()
add_library(lockstep_all INTERFACE)
target_link_libraries(lockstep_all INTERFACE ${ROOM_TARGETS})
target_compile_features(lockstep_all INTERFACE cxx_std_20)
target_compile_options(lockstep_all INTERFACE -ffp-contract=off)  # an op of one's own keeps the promise, too
set_target_properties(lockstep_all PROPERTIES EXPORT_NAME lockstep)
add_library(lockstep::lockstep ALIAS lockstep_all)  # as outside, for lockstep_add_plugin()

# As it is installed from the start: else CMake pads the build tree's RUNPATH with colons, and an empty entry is the
# current folder, from which anybody's libraries would be loaded.
set_target_properties(lockstep PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}" BUILD_WITH_INSTALL_RPATH ON)
install(TARGETS lockstep RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(TARGETS lockstep_all ${ROOM_TARGETS} EXPORT lockstepTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/lockstep DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/lockstep)
install(EXPORT lockstepTargets NAMESPACE lockstep:: DESTINATION ${PACKAGE_DIR})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/lockstepConfig.cmake.in
  ${CMAKE_BINARY_DIR}/generated/lockstepConfig.cmake INSTALL_DESTINATION ${PACKAGE_DIR})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/lockstepConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/Libraries.cmake ${CMAKE_CURRENT_LIST_DIR}/FindoneDNN.cmake
  ${CMAKE_CURRENT_LIST_DIR}/FindPCRE2.cmake ${CMAKE_CURRENT_LIST_DIR}/Plugin.cmake
  ${CMAKE_CURRENT_LIST_DIR}/plugin_entry.cpp ${CMAKE_CURRENT_LIST_DIR}/plugin.map
  ${CMAKE_BINARY_DIR}/generated/lockstepConfig.cmake
  ${CMAKE_BINARY_DIR}/generated/lockstepConfigVersion.cmake DESTINATION ${PACKAGE_DIR})

install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
foreach(PAIR "docs|${CMAKE_INSTALL_DOCDIR}" "examples|${CMAKE_INSTALL_DATADIR}/lockstep/examples"
        "share|${CMAKE_INSTALL_DATADIR}/lockstep" "helm|${CMAKE_INSTALL_DATADIR}/lockstep/helm")
  string(REPLACE "|" ";" PAIR "${PAIR}")
  list(GET PAIR 0 FROM)
  list(GET PAIR 1 TO)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/${FROM}/ DESTINATION ${TO} COMPONENT program OPTIONAL)
endforeach()

# The program writes its own completion: it alone knows its commands.
install(CODE "
  set(FOLDER \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/bash-completion/completions\")
  file(MAKE_DIRECTORY \"\${FOLDER}\")
  execute_process(COMMAND \"$<TARGET_FILE:lockstep>\" completion bash
    OUTPUT_FILE \"\${FOLDER}/lockstep\" COMMAND_ERROR_IS_FATAL ANY)
" COMPONENT program)

set(CPACK_PACKAGE_NAME lockstep)
set(CPACK_PACKAGE_VENDOR lockstep)
set(CPACK_PACKAGE_FILE_NAME lockstep-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_GENERATOR TGZ)
set(CPACK_STRIP_FILES bin/lockstep)
set(CPACK_VERBATIM_VARIABLES ON)
include(CPack)
