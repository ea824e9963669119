# find_package(rankcore) finds this: pass -Drankcore_DIR="$(rankcore-config --cmakedir)".
#
#   rankcore::headers  the headers, with the flags that keep numbers those of Python
#   rankcore::shared   librankcore, built from them in your build tree

include_guard(GLOBAL)

if(NOT TARGET rankcore::headers)
  add_library(rankcore::headers INTERFACE IMPORTED GLOBAL)
  get_filename_component(rankcore_INCLUDE_DIR "${CMAKE_CURRENT_LIST_DIR}/../include" ABSOLUTE)
  target_include_directories(rankcore::headers INTERFACE "${rankcore_INCLUDE_DIR}")
  # One rounding for a * b and one for + c, as in Python.
  target_compile_options(rankcore::headers INTERFACE
    $<$<OR:$<C_COMPILER_ID:GNU,Clang,AppleClang>,$<CXX_COMPILER_ID:GNU,Clang,AppleClang>>:-ffp-contract=off>)
  if(UNIX)
    target_link_libraries(rankcore::headers INTERFACE m)
  endif()
endif()

if(NOT TARGET rankcore::shared)
  add_library(rankcore_shared SHARED EXCLUDE_FROM_ALL "${rankcore_INCLUDE_DIR}/librankcore.c")
  add_library(rankcore::shared ALIAS rankcore_shared)
  set_target_properties(rankcore_shared PROPERTIES
    OUTPUT_NAME rankcore
    C_STANDARD 99
    C_VISIBILITY_PRESET hidden
    VERSION 1.0.0
    SOVERSION 1)
  target_compile_definitions(rankcore_shared PRIVATE LIBRANKCORE_BUILD)
  target_link_libraries(rankcore_shared PUBLIC rankcore::headers)
endif()
