# Compiles the programs for the kernel and makes a C header that carries them (libbpf's skeleton). Needs clang and bpftool
# but neither root nor the build machine's BTF: the programs name the kernel's types themselves (bpf/kernel_types.bpf.h).
find_program(TAILOR_BPF_CLANG NAMES clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14 REQUIRED
  DOC "clang that compiles BPF programs")
find_program(TAILOR_BPFTOOL NAMES bpftool HINTS /usr/sbin /sbin REQUIRED DOC "bpftool that links them and writes the skeleton")

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(TAILOR_BPF_ARCH x86)
else()
  message(FATAL_ERROR "bpf/: only x86-64 is supported (bpf/compat.bpf.h, bpf/kernel_types.bpf.h), not ${CMAKE_SYSTEM_PROCESSOR}")
endif()

# tailor_bpf(NAME SOURCES file...)
# Compiles each file alone, links the objects, and provides the interface library NAME, whose users include <NAME.skel.h>.
function(tailor_bpf name)
  cmake_parse_arguments(BPF "" "" "SOURCES" ${ARGN})
  set(objects)
  foreach(source IN LISTS BPF_SOURCES)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${source}.o)
    # -ffreestanding: <stdint.h> is then the compiler's own, which does not ask for the C library's headers.
    add_custom_command(OUTPUT ${object}
      COMMAND ${TAILOR_BPF_CLANG} -target bpf -mcpu=v3 -g -O2 -std=gnu17 -ffreestanding -Wall -Wextra -Wno-unused-parameter -Werror
              -D__TARGET_ARCH_${TAILOR_BPF_ARCH} -I${CMAKE_SOURCE_DIR}/include -I${CMAKE_CURRENT_SOURCE_DIR}
              -idirafter /usr/include/${CMAKE_LIBRARY_ARCHITECTURE} -fdebug-prefix-map=${CMAKE_SOURCE_DIR}=.
              -MD -MF ${object}.d -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}
      DEPENDS ${source} DEPFILE ${object}.d VERBATIM COMMENT "Compiling ${source} for the kernel")
    list(APPEND objects ${object})
  endforeach()
  set(linked ${CMAKE_CURRENT_BINARY_DIR}/${name}.bpf.o)
  set(skeleton ${CMAKE_CURRENT_BINARY_DIR}/${name}.skel.h)
  add_custom_command(OUTPUT ${linked} ${skeleton}
    COMMAND ${TAILOR_BPFTOOL} gen object ${linked} ${objects}
    COMMAND ${TAILOR_BPFTOOL} gen skeleton ${linked} name ${name} > ${skeleton}
    DEPENDS ${objects} VERBATIM COMMENT "Linking the BPF programs into ${name}.skel.h")
  add_custom_target(${name}_skeleton DEPENDS ${skeleton})
  add_library(${name} INTERFACE)
  add_dependencies(${name} ${name}_skeleton)
  target_include_directories(${name} SYSTEM INTERFACE ${CMAKE_CURRENT_BINARY_DIR})
endfunction()

# libbpf and what it needs, static where the archives are installed: commands that only read recordings then run on
# machines without libbpf.
find_library(TAILOR_LIBBPF NAMES libbpf.a bpf REQUIRED)
find_library(TAILOR_LIBELF NAMES libelf.a elf REQUIRED)
find_library(TAILOR_LIBZ NAMES libz.a z REQUIRED)
add_library(tailor_libbpf INTERFACE)
target_link_libraries(tailor_libbpf INTERFACE ${TAILOR_LIBBPF} ${TAILOR_LIBELF} ${TAILOR_LIBZ})
