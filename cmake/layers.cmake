# Flags of our own targets, and uper_layer(): one library and one test program for each layer.

include(GNUInstallDirs)

# Linked privately: nothing of it reaches the users of the library.
add_library(uper_flags INTERFACE)
set(UPER_CXX_FLAGS
  -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  # A local name may shadow one of another file that is compiled together with this one (see below).
  $<$<NOT:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>:-Wshadow>
  -Wno-missing-field-initializers  # designated initializers leave the rest at their defaults
  # A fused multiply-add that the compiler chooses would change results between instruction sets.
  -ffp-contract=off
  # Nobody reads errno or floating-point flags; results stay the same, loops become vectors.
  -fno-math-errno -fno-trapping-math
  $<$<BOOL:${UPER_WERROR}>:-Werror>)
# nvcc warns by itself; what it hands on to the host compiler is half generated.
set(UPER_CUDA_FLAGS $<$<BOOL:${UPER_WERROR}>:-Werror=all-warnings>)
target_compile_options(uper_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${UPER_CXX_FLAGS}>" "$<$<COMPILE_LANGUAGE:CUDA>:${UPER_CUDA_FLAGS}>")
target_include_directories(uper_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
if(UPER_SANITIZE)
  target_compile_options(uper_flags INTERFACE
    -fsanitize=${UPER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(uper_flags INTERFACE -fsanitize=${UPER_SANITIZE})
endif()

# Some presets compile several files of a target together (CMAKE_UNITY_BUILD; UPER_UNITY_TESTS for the
# tests alone), which takes half the time from scratch.
option(UPER_UNITY_TESTS "Compile the tests of a layer together" OFF)
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)

# Files that Highway includes again for every instruction set cannot be compiled together with others.
function(uper_compile_apart)
  foreach(file IN LISTS ARGN)
    file(STRINGS ${file} again REGEX "^#define HWY_TARGET_INCLUDE" LIMIT_COUNT 1)
    if(again)
      set_source_files_properties(${file} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endfunction()

if(UPER_TESTS)
  enable_testing()
  find_package(GTest CONFIG REQUIRED)
  include(GoogleTest)
  add_custom_target(tests)  # what ctest runs
endif()

# Users of the library inherit the include folder, C++20, and equal sums on every machine.
function(uper_public_flags target)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
endfunction()

# uper_tests(<name> <target> <files...>): one test program; every TEST in it is a ctest test.
function(uper_tests name target)
  if(NOT UPER_TESTS OR NOT ARGN)
    return()
  endif()
  add_executable(${name}_test ${ARGN})
  add_dependencies(tests ${name}_test)
  target_link_libraries(${name}_test PRIVATE uper_flags ${target} GTest::gtest_main)
  if(UPER_UNITY_TESTS)
    set_target_properties(${name}_test PROPERTIES UNITY_BUILD ON)
  endif()
  # The tested library keeps its flags. The checks need not run fast; with these they compile faster.
  # (GCC 12 at -O1 takes operators new and delete that count for a mismatched pair.)
  target_compile_options(${name}_test PRIVATE
    $<$<CONFIG:Release>:-O1> $<$<CXX_COMPILER_ID:GNU>:-Wno-mismatched-new-delete>)
  gtest_discover_tests(${name}_test TEST_PREFIX ${name}. DISCOVERY_MODE PRE_TEST
    PROPERTIES TIMEOUT 300)
endfunction()

# uper_layer(<name> [FOLDER <folder>] [DEPENDS <layers...>] [LIBRARIES <targets...>]
# [PRIVATE_LIBRARIES <targets...>] [DEFINITIONS <definitions...>] [EXCLUDE <regex>]):
#
# Makes the library uper::<name> if the layer is in UPER_LAYERS. It takes all .cc files below the
# folder (src/uper/<name>), except for cuda/ and files that match EXCLUDE. Files named *_test.cc
# become the layer's test program, so no test can be forgotten.
function(uper_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "FOLDER;EXCLUDE"
    "DEPENDS;LIBRARIES;PRIVATE_LIBRARIES;DEFINITIONS")
  if(NOT name IN_LIST UPER_LAYERS)
    return()
  endif()
  set(folder src/uper/${name})
  if(ARG_FOLDER)
    set(folder ${ARG_FOLDER})
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cc)
  if(ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${ARG_EXCLUDE})
  endif()
  list(FILTER sources EXCLUDE REGEX "/src/uper/[a-z]+/cuda/")
  uper_compile_apart(${sources})
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(TRANSFORM ARG_DEPENDS PREPEND uper_)
  add_library(uper_${name} STATIC ${sources})
  add_library(uper::${name} ALIAS uper_${name})
  target_compile_definitions(uper_${name} PRIVATE ${ARG_DEFINITIONS})
  target_link_libraries(uper_${name}
    PRIVATE $<BUILD_INTERFACE:uper_flags> ${ARG_PRIVATE_LIBRARIES}
    PUBLIC Threads::Threads ${ARG_DEPENDS} ${ARG_LIBRARIES})
  uper_public_flags(uper_${name})
  uper_tests(${name} uper_${name} ${tests})
endfunction()

# uper_add_cuda(<layers...>): the .cc and .cu files below each layer's folder cuda/ as a part of the
# layer, and their tests as one program, cuda_test, which skips them where there is no GPU. The CUDA
# runtime is linked in, and it looks for the driver when it is first used: the program starts
# without either.
function(uper_add_cuda)
  set(all_tests)
  foreach(layer IN LISTS ARGN)
    if(NOT layer IN_LIST UPER_LAYERS)
      continue()
    endif()
    set(folder ${PROJECT_SOURCE_DIR}/src/uper/${layer}/cuda)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cc ${folder}/*.cu)
    set(tests ${sources})
    list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
    list(FILTER tests INCLUDE REGEX "_test\\.cc$")
    list(APPEND all_tests ${tests})
    target_sources(uper_${layer} PRIVATE ${sources})
    # Its sums must be the host's, bit for bit.
    set(replay_kernels ${sources})
    list(FILTER replay_kernels INCLUDE REGEX "/replay_kernels\\.cu$")
    set_source_files_properties(${replay_kernels} PROPERTIES COMPILE_OPTIONS -fmad=false)
    target_compile_definitions(uper_${layer} PRIVATE UPER_CUDA)
    target_link_libraries(uper_${layer} PUBLIC CUDA::cudart_static)
    set(last uper_${layer})
  endforeach()
  uper_tests(cuda "${last}" ${all_tests})
endfunction()

# uper_embed(<layer> <folder> <glob> <header> <function>): files of a folder of the repository become
# part of a layer's library.
function(uper_embed layer folder glob header function)
  if(NOT layer IN_LIST UPER_LAYERS)
    return()
  endif()
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake)
  set(table ${PROJECT_BINARY_DIR}/${function}.cc)
  set(folder ${PROJECT_SOURCE_DIR}/${folder})
  file(GLOB files CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/${glob})
  list(FILTER files EXCLUDE REGEX "^sweeps/")
  list(SORT files)
  list(TRANSFORM files PREPEND ${folder}/ OUTPUT_VARIABLE paths)
  add_custom_command(OUTPUT ${table}
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${folder} "-DFILES=${files}" -DHEADER=${header}
      -DFUNCTION=${function} -DOUTPUT=${table} -P ${script}
    DEPENDS ${script} ${paths} VERBATIM)
  set_source_files_properties(${table} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(uper_${layer} PRIVATE ${table})
endfunction()
