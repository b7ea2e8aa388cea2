# `cmake --install` puts these in place: headers, static libraries, the CMake package and the program.
# Each component except for the command line also gets a pkg-config file.
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/uper)
set(header_folder ${CMAKE_INSTALL_INCLUDEDIR}/uper)

set(targets)
foreach(layer IN LISTS UPER_LAYERS)
  list(APPEND targets uper_${layer})
  set_target_properties(uper_${layer} PROPERTIES EXPORT_NAME ${layer})
  if(layer STREQUAL "cli")
    install(FILES ${PROJECT_SOURCE_DIR}/src/uper/cli/main.h DESTINATION ${header_folder}/cli)
  elseif(NOT layer STREQUAL "experiments")  # its headers are ours alone
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/uper/${layer} DESTINATION ${header_folder}
      FILES_MATCHING PATTERN "*.h" PATTERN "*_for_tests.h" EXCLUDE PATTERN "cuda" EXCLUDE)
  endif()
endforeach()
if(TARGET uper_cli_parts)
  list(APPEND targets uper_cli_parts)
  set_target_properties(uper_cli_parts PROPERTIES EXPORT_NAME cli_parts)
endif()
install(TARGETS ${targets} EXPORT uperTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT uperTargets NAMESPACE uper:: DESTINATION ${package_folder})
if(TARGET uper)
  install(TARGETS uper RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(UPER_ALE_INSTALL_FOLDER ${CMAKE_INSTALL_LIBDIR}/uper)
if(UPER_HAS_ATARI AND "envs" IN_LIST UPER_LAYERS)
  install(FILES ${UPER_ALE_LIBRARY} DESTINATION ${UPER_ALE_INSTALL_FOLDER})
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/uperConfig.cmake.in
  ${PROJECT_BINARY_DIR}/uperConfig.cmake INSTALL_DESTINATION ${package_folder}
  PATH_VARS UPER_ALE_INSTALL_FOLDER)
# Before 1.0 a new minor version may change interfaces.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/uperConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/uperConfig.cmake ${PROJECT_BINARY_DIR}/uperConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/components.cmake DESTINATION ${package_folder})

# One pkg-config file per component. Static libraries: users first, what they use after them.
function(uper_pkg_config component)
  set(libraries)
  set(requires)
  foreach(layer IN LISTS uper_${component}_layers)
    list(PREPEND libraries -luper_${layer})
    if(layer STREQUAL "checkpoint")
      list(APPEND requires nlohmann_json libzstd libxxhash)
    elseif(layer STREQUAL "nn")
      list(APPEND requires libhwy)
    elseif(layer STREQUAL "train")
      list(APPEND requires tomlplusplus)
    endif()
  endforeach()
  if(UPER_HAS_ATARI AND "envs" IN_LIST uper_${component}_layers)
    list(APPEND libraries "-L\${libdir}/uper" -lale)
    list(APPEND requires zlib)
  endif()
  if(UPER_CUDA AND "nn" IN_LIST uper_${component}_layers)
    list(APPEND libraries "-L${CUDAToolkit_LIBRARY_DIR}" -lcudart_static -ldl -lrt)
  endif()
  list(APPEND libraries -pthread)
  string(REPLACE ";" " " libraries "${libraries}")
  string(REPLACE ";" " " requires "${requires}")
  file(RELATIVE_PATH UPER_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  set(UPER_PC_LIBDIR "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
  set(UPER_PC_INCLUDEDIR "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
  set(file ${PROJECT_BINARY_DIR}/uper-${component}.pc)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/uper.pc.in ${file} @ONLY)
  install(FILES ${file} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
foreach(component IN LISTS UPER_COMPONENTS)
  if(NOT component STREQUAL "cli")  # the command line is for CMake alone
    uper_pkg_config(${component})
  endif()
endforeach()
