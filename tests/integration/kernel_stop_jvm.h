/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in of a JVM's library; each function does nothing but pass its probe. */
#ifndef TAILOR_TESTS_KERNEL_STOP_JVM_H
#define TAILOR_TESTS_KERNEL_STOP_JVM_H

void stand_in_safepoint_begin(void);
void stand_in_safepoint_end(void);
void stand_in_operation(void);

#endif /* TAILOR_TESTS_KERNEL_STOP_JVM_H */
