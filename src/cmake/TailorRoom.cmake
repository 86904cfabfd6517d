# Flags that every C target of the project gets.
add_library(tailor_flags INTERFACE)
target_compile_definitions(tailor_flags INTERFACE _GNU_SOURCE TAILOR_VERSION="${PROJECT_VERSION}")
target_compile_options(tailor_flags INTERFACE
  -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wswitch
  -Wformat=2 -Wundef -fno-common -fvisibility=hidden)
if(CMAKE_C_COMPILER_ID STREQUAL GNU)
  # Texts for people are cut to their buffers on purpose, by snprintf().
  target_compile_options(tailor_flags INTERFACE -Wno-format-truncation)
endif()
if(TAILOR_WERROR)
  target_compile_options(tailor_flags INTERFACE -Werror)
endif()
if(TAILOR_SANITIZE)
  target_compile_options(tailor_flags INTERFACE -fsanitize=${TAILOR_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(tailor_flags INTERFACE -fsanitize=${TAILOR_SANITIZE})
endif()

# The contracts, which every room may see.
add_library(tailor_contracts INTERFACE)
target_include_directories(tailor_contracts INTERFACE ${CMAKE_SOURCE_DIR}/include)

# tailor_room(NAME SOURCES file... [ROOMS room...] [LIBRARIES library...])
# Builds the room's static library tailor_NAME. It sees include/ and, of src/, what its ROOMS hand on.
function(tailor_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;ROOMS;LIBRARIES" ${ARGN})
  add_library(tailor_${name} STATIC ${ROOM_SOURCES})
  target_link_libraries(tailor_${name} PUBLIC tailor_contracts PRIVATE tailor_flags)
  target_include_directories(tailor_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  foreach(room IN LISTS ROOM_ROOMS)
    target_link_libraries(tailor_${name} PUBLIC tailor_${room})
  endforeach()
  target_link_libraries(tailor_${name} PRIVATE ${ROOM_LIBRARIES})
endfunction()

# tailor_test(NAME SOURCES file... ROOMS room... [LIBRARIES library...] [TIMEOUT seconds])
# A cmocka program as one ctest test "unit/NAME" (or "LABEL/NAME"); exit code 77 means skipped. Other than unit tests run alone.
function(tailor_test name)
  cmake_parse_arguments(TEST "" "TIER;TIMEOUT" "SOURCES;ROOMS;LIBRARIES" ${ARGN})
  if(NOT TEST_TIER)
    set(TEST_TIER unit)
  endif()
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 120)
  endif()
  set(target test_${TEST_TIER}_${name})
  add_executable(${target} ${TEST_SOURCES})
  target_link_libraries(${target} PRIVATE tailor_flags tailor_contracts ${TEST_LIBRARIES} cmocka Threads::Threads)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR})
  foreach(room IN LISTS TEST_ROOMS)
    target_link_libraries(${target} PRIVATE tailor_${room})
  endforeach()
  add_test(NAME ${TEST_TIER}/${name} COMMAND ${target})
  set_tests_properties(${TEST_TIER}/${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${TEST_TIMEOUT} LABELS ${TEST_TIER})
  if(NOT TEST_TIER STREQUAL unit)
    set_tests_properties(${TEST_TIER}/${name} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()

# tailor_script_test(NAME TIER tier SCRIPT file [TIMEOUT seconds] [ENVIRONMENT VAR=value...])
# A Python 3 (standard library only) program that gets TAILOR (the binary), TAILOR_AGENT (the agent's library) and
# TAILOR_SOURCE (the checkout) in its environment; exit code 77 means skipped. It runs alone: see tailor_tests_beside().
function(tailor_script_test name)
  cmake_parse_arguments(TEST "" "TIER;TIMEOUT;SCRIPT" "ENVIRONMENT" ${ARGN})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 180)
  endif()
  add_test(NAME ${TEST_TIER}/${name} COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/${TEST_SCRIPT})
  set_tests_properties(${TEST_TIER}/${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${TEST_TIMEOUT} LABELS ${TEST_TIER}
    RUN_SERIAL ON ENVIRONMENT
    "TAILOR=$<TARGET_FILE:tailor>;TAILOR_AGENT=$<TARGET_FILE:tailor-agent>;TAILOR_SOURCE=${CMAKE_SOURCE_DIR};${TEST_ENVIRONMENT}")
endfunction()

# tailor_tests_beside(TIER/NAME...)
# Tests that mostly wait, and judge no time that another one of them could make longer: ctest --parallel runs them at the same time.
# Those named first begin first; it is best if they are the longest.
function(tailor_tests_beside)
  list(LENGTH ARGN cost)
  foreach(test IN LISTS ARGN)
    set_tests_properties(${test} PROPERTIES RUN_SERIAL OFF COST ${cost})
    math(EXPR cost "${cost} - 1")
  endforeach()
endfunction()
