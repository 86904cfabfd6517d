/* SPDX-License-Identifier: Apache-2.0 */
/* The wall clock, which only the program's own figures may see. */
#ifndef TAILOR_SIMULATION_SYSTEM_H
#define TAILOR_SIMULATION_SYSTEM_H

#include <stdint.h>

uint64_t system_clock_ns(void);

#endif /* TAILOR_SIMULATION_SYSTEM_H */
