# The version of the headers is that of their ABI: what is compiled against one works with all of
# its major version.
file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/../include/rankcore.h" rankcore_ABI REGEX "#define RANKCORE_ABI [0-9]+")
string(REGEX REPLACE ".*RANKCORE_ABI ([0-9]+).*" "\\1" PACKAGE_VERSION "${rankcore_ABI}")
if(PACKAGE_FIND_VERSION_MAJOR STREQUAL PACKAGE_VERSION OR NOT PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
