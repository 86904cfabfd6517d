/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to the room: where a JVM's libjvm.so says what its VM Thread does. The places are USDT probes: one `nop` each, described in the
 * ELF section .note.stapsdt (systemtap's UserSpaceProbeImplementation). x86-64.
 */
#ifndef TAILOR_COLLECT_KERNEL_USDT_H
#define TAILOR_COLLECT_KERNEL_USDT_H

#include <stddef.h>
#include <stdint.h>

struct tailor_usdt {
	uint64_t offset; /* of the instruction in the file */
	uint64_t cookie; /* what bpf/safepoint.bpf.c is to know of it */
};

/* Each of the four kinds once, and some that the compiler has made two or three of. */
#define TAILOR_USDT_MAX 12

/*
 * Finds the places of SAFEPOINT_BEGIN, SAFEPOINT_END, VM_OPERATION_BEGIN and VM_OPERATION_END in the ELF file `fd`, which may be
 * anybody's: nothing of it is believed. Returns how many (at most TAILOR_USDT_MAX), each kind at least once; or a negative errno: -ENOENT
 * (it lacks one of them), -ENOEXEC (no such file, or a broken one), -ENOMEM, or what reading it gave. Any thread.
 */
int tailor_usdt_find(int fd, struct tailor_usdt ret_places[TAILOR_USDT_MAX]);

#endif /* TAILOR_COLLECT_KERNEL_USDT_H */
