# The Arcade Learning Environment, which tools/setup_ale.sh builds into .cache/ of the checkout.
# Sets UPER_HAS_ATARI, UPER_ATARI_LIBRARIES, UPER_ATARI_EXCLUDE (files left out), UPER_ATARI_ROM_DIR
# and UPER_ALE_LIBRARY.

set(UPER_ALE_ROOT ${PROJECT_SOURCE_DIR}/.cache/ale-0.12.1 CACHE PATH "What tools/setup_ale.sh built")
set(UPER_ATARI AUTO CACHE STRING "Atari games: ON, OFF, or AUTO (if tools/setup_ale.sh was run)")
set(UPER_ATARI_ROM_DIR ${UPER_ALE_ROOT}/roms)

set(UPER_ALE_LIBRARY ${UPER_ALE_ROOT}/lib/libale.a)
if(UPER_ATARI STREQUAL "AUTO")
  if(EXISTS ${UPER_ALE_LIBRARY})
    set(use_ale ON)
  else()
    set(use_ale OFF)
    message(STATUS "Atari: no, ${UPER_ALE_LIBRARY} is missing (tools/setup_ale.sh builds it)")
  endif()
else()
  set(use_ale ${UPER_ATARI})
endif()

if(use_ale)
  if(NOT EXISTS ${UPER_ALE_LIBRARY})
    message(FATAL_ERROR "UPER_ATARI is ON but ${UPER_ALE_LIBRARY} is missing: run tools/setup_ale.sh, "
      "or build with -DUPER_ATARI=OFF")
  endif()
  find_package(ZLIB REQUIRED)
  add_library(uper_ale STATIC IMPORTED)
  set_target_properties(uper_ale PROPERTIES IMPORTED_LOCATION ${UPER_ALE_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${UPER_ALE_ROOT}/include)
  target_link_libraries(uper_ale INTERFACE ZLIB::ZLIB)
  set(UPER_HAS_ATARI ON)
  set(UPER_ATARI_LIBRARIES uper_ale)
  set(UPER_ATARI_EXCLUDE "/atari/no_emulator\\.cc$")
else()
  set(UPER_HAS_ATARI OFF)
  set(UPER_ATARI_LIBRARIES)
  set(UPER_ATARI_EXCLUDE "/atari/(ale_emulator\\.cc|ale_.*_test\\.cc)$")
endif()
