# lockstep_add_plugin(NAME source...): the shared library libNAME.so, for `plugins: [./libNAME.so]` in a job. Its sources
# define lockstep::add_plugin(Registries&). It is linked as the CUDA module is: what it calls of lockstep is in it, so that
# any program may open it, and every symbol is found when it is linked.
function(lockstep_add_plugin NAME)
  set(HERE ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
  add_library(${NAME} MODULE ${ARGN} ${HERE}/plugin_entry.cpp)
  target_link_libraries(${NAME} PRIVATE lockstep::lockstep)
  set_target_properties(${NAME} PROPERTIES PREFIX lib CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS ${HERE}/plugin.map)
  target_link_options(${NAME} PRIVATE -Wl,-z,defs -Wl,--gc-sections -Wl,--as-needed
    -Wl,--version-script=${HERE}/plugin.map)
endfunction()
