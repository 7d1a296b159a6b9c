# Fuzz targets: one file per parser, which defines LLVMFuzzerTestOneInput.
#
# In an ordinary build each is linked with replay.cpp, and a test feeds it every file of corpus/<target>. In the `fuzz`
# preset each is linked with libFuzzer, and <target>_mutator.cpp is added where there is one: it keeps checksums right,
# so that what is mutated gets past them.
#
#   lockstep_fuzz_target(NAME [ROOM room SOURCES file...] [LINKS library...] [MUTATOR target])
#
# ROOM is linked. Of rooms that are large (train brings all ops) the `fuzz` preset compiles SOURCES only. MUTATOR: the
# target whose mutator it shares.
add_library(fuzz_support STATIC ${CMAKE_CURRENT_LIST_DIR}/support.cpp)
target_include_directories(fuzz_support PUBLIC ${CMAKE_SOURCE_DIR}/tests ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(fuzz_support PUBLIC lockstep_core PRIVATE lockstep_flags fmt::fmt)
if(LOCKSTEP_SANITIZE STREQUAL "fuzz")
  add_custom_target(fuzz)
else()
  add_library(fuzz_replay STATIC ${CMAKE_CURRENT_LIST_DIR}/replay.cpp)  # a main()
  target_link_libraries(fuzz_replay PRIVATE fuzz_support lockstep_flags fmt::fmt)
endif()
set(FUZZ_FOLDER ${CMAKE_CURRENT_LIST_DIR})

function(lockstep_fuzz_target NAME)
  cmake_parse_arguments(TARGET "" "ROOM;MUTATOR" "SOURCES;LINKS" ${ARGN})
  list(TRANSFORM TARGET_SOURCES PREPEND ${CMAKE_SOURCE_DIR}/src/)
  add_executable(fuzz_${NAME} ${FUZZ_FOLDER}/${NAME}_target.cpp)
  if(LOCKSTEP_SANITIZE STREQUAL "fuzz" OR NOT TARGET_ROOM)
    target_sources(fuzz_${NAME} PRIVATE ${TARGET_SOURCES})
  else()
    target_link_libraries(fuzz_${NAME} PRIVATE lockstep_${TARGET_ROOM})
  endif()
  target_link_libraries(fuzz_${NAME} PRIVATE fuzz_support lockstep_flags ${TARGET_LINKS} fmt::fmt)
  if(LOCKSTEP_SANITIZE STREQUAL "fuzz")
    if(NOT TARGET_MUTATOR)
      set(TARGET_MUTATOR ${NAME})
    endif()
    if(EXISTS ${FUZZ_FOLDER}/${TARGET_MUTATOR}_mutator.cpp)
      target_sources(fuzz_${NAME} PRIVATE ${FUZZ_FOLDER}/${TARGET_MUTATOR}_mutator.cpp ${FUZZ_FOLDER}/mutator.cpp)
    endif()
    add_dependencies(fuzz fuzz_${NAME})
  else()
    target_link_libraries(fuzz_${NAME} PRIVATE fuzz_replay)
    add_test(NAME fuzz.${NAME} COMMAND fuzz_${NAME} ${FUZZ_FOLDER}/corpus/${NAME})
    set_tests_properties(fuzz.${NAME} PROPERTIES LABELS fuzz TIMEOUT 600)
  endif()
endfunction()

lockstep_fuzz_target(job LINKS lockstep_config)
lockstep_fuzz_target(overrides LINKS lockstep_config)

foreach(NAME tar archive idx cifar csv parquet image text tokens tokenizer packed index_notes)
  lockstep_fuzz_target(${NAME} LINKS lockstep_data)
endforeach()

lockstep_fuzz_target(manifest ROOM checkpoint SOURCES run/checkpoint/manifest.cpp LINKS nlohmann_json::nlohmann_json)
lockstep_fuzz_target(safetensors ROOM checkpoint SOURCES run/checkpoint/safetensors.cpp LINKS nlohmann_json::nlohmann_json)
lockstep_fuzz_target(checkpoint ROOM checkpoint MUTATOR manifest LINKS nlohmann_json::nlohmann_json
  SOURCES run/checkpoint/checkpoint.cpp run/checkpoint/manifest.cpp run/checkpoint/safetensors.cpp run/checkpoint/files.cpp)

lockstep_fuzz_target(hostfile ROOM launch LINKS Threads::Threads
  SOURCES launch/hosts.cpp launch/child.cpp launch/processes.cpp)
lockstep_fuzz_target(control_socket ROOM launch SOURCES launch/control_server.cpp launch/control_socket.cpp
  launch/listening.cpp launch/hosts.cpp launch/child.cpp launch/processes.cpp LINKS Threads::Threads)

lockstep_fuzz_target(run_events SOURCES cli/run_events.cpp observe/telemetry/event_json.cpp LINKS nlohmann_json::nlohmann_json)
lockstep_fuzz_target(trace ROOM telemetry LINKS nlohmann_json::nlohmann_json
  SOURCES observe/telemetry/rank_trace.cpp observe/telemetry/trace_events.cpp
  observe/telemetry/diagnosis.cpp observe/telemetry/text.cpp)
