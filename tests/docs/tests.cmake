# Pages that would otherwise fall behind the program.
lockstep_script_test(docs.links COMMAND python3 ${CMAKE_SOURCE_DIR}/scripts/check_links.py)
lockstep_script_test(docs.check_links COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/check_links_test.py)
lockstep_script_test(docs.tables COMMAND python3 ${CMAKE_SOURCE_DIR}/scripts/docs_tables.py --check)
lockstep_script_test(docs.ops_table COMMAND python3 ${CMAKE_SOURCE_DIR}/scripts/ops_table.py --check)
lockstep_script_test(docs.goodput COMMAND python3 ${CMAKE_SOURCE_DIR}/scripts/goodput_page.py --check)
foreach(PICTURES strategy timeline slurm)
  lockstep_script_test(docs.${PICTURES}_pictures COMMAND python3 ${CMAKE_SOURCE_DIR}/scripts/${PICTURES}_picture.py --check)
endforeach()
