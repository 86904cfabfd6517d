/* SPDX-License-Identifier: Apache-2.0 */
/* Marks memory that is somebody else's for a while, where AddressSanitizer is there to see it. */
#ifndef TAILOR_SIMULATION_ASAN_H
#define TAILOR_SIMULATION_ASAN_H

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(memory, bytes) ((void)(memory), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(memory, bytes) ((void)(memory), (void)(bytes))
#endif

#endif /* TAILOR_SIMULATION_ASAN_H */
