/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls that threads wait in: what a wait in one of them can be for. x86-64 numbers. */
#ifndef TAILOR_CORRELATE_CALLS_H
#define TAILOR_CORRELATE_CALLS_H

#include <stddef.h>
#include <stdint.h>

enum call_family {
	CALL_UNKNOWN,   /* not recorded, or a call whose number does not tell (restart_syscall, io_uring_enter) */
	CALL_EXCEPTION, /* none: a page fault */
	CALL_LOCK,      /* futex and the like: locks, monitors, conditions, parking */
	CALL_SLEEP,     /* for a time and nothing else */
	CALL_POLL,      /* for any of several sockets, or a time-out */
	CALL_RECEIVE,   /* for bytes or a connection */
	CALL_SEND,      /* until a socket or pipe takes more */
	CALL_FILE,      /* files, directories, memory maps */
};

/* `call`: as TAILOR_SWITCH_CALL() gives it. */
enum call_family call_family(uint16_t call);

/* "futex", "system call 999"; "a page fault" for TAILOR_CALL_NONE, "" for 0. Returns a literal or buffer. */
const char *call_name(uint16_t call, char *buffer, size_t size);

#endif /* TAILOR_CORRELATE_CALLS_H */
