/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/calls.h"

#include <stdio.h>
#include <tailor/event.h>

struct call {
	uint16_t number; /* arch/x86/entry/syscalls/syscall_64.tbl */
	uint8_t family;
	const char *name;
};

/* Ordered by number. A call that is not here is only named by its number. */
static const struct call calls[] = {
	{0, CALL_RECEIVE, "read"},
	{1, CALL_SEND, "write"},
	{2, CALL_FILE, "open"},
	{3, CALL_FILE, "close"},
	{4, CALL_FILE, "stat"},
	{5, CALL_FILE, "fstat"},
	{6, CALL_FILE, "lstat"},
	{7, CALL_POLL, "poll"},
	{9, CALL_FILE, "mmap"},
	{10, CALL_FILE, "mprotect"},
	{11, CALL_FILE, "munmap"},
	{17, CALL_FILE, "pread64"},
	{18, CALL_FILE, "pwrite64"},
	{19, CALL_RECEIVE, "readv"},
	{20, CALL_SEND, "writev"},
	{21, CALL_FILE, "access"},
	{23, CALL_POLL, "select"},
	{25, CALL_FILE, "mremap"},
	{26, CALL_FILE, "msync"},
	{28, CALL_FILE, "madvise"},
	{34, CALL_SLEEP, "pause"},
	{35, CALL_SLEEP, "nanosleep"},
	{40, CALL_SEND, "sendfile"},
	{42, CALL_RECEIVE, "connect"},
	{43, CALL_RECEIVE, "accept"},
	{44, CALL_SEND, "sendto"},
	{45, CALL_RECEIVE, "recvfrom"},
	{46, CALL_SEND, "sendmsg"},
	{47, CALL_RECEIVE, "recvmsg"},
	{65, CALL_LOCK, "semop"},
	{73, CALL_LOCK, "flock"},
	{74, CALL_FILE, "fsync"},
	{75, CALL_FILE, "fdatasync"},
	{76, CALL_FILE, "truncate"},
	{77, CALL_FILE, "ftruncate"},
	{78, CALL_FILE, "getdents"},
	{82, CALL_FILE, "rename"},
	{83, CALL_FILE, "mkdir"},
	{87, CALL_FILE, "unlink"},
	{162, CALL_FILE, "sync"},
	{202, CALL_LOCK, "futex"},
	{217, CALL_FILE, "getdents64"},
	{221, CALL_FILE, "fadvise64"},
	{230, CALL_SLEEP, "clock_nanosleep"},
	{232, CALL_POLL, "epoll_wait"},
	{257, CALL_FILE, "openat"},
	{262, CALL_FILE, "newfstatat"},
	{263, CALL_FILE, "unlinkat"},
	{264, CALL_FILE, "renameat"},
	{270, CALL_POLL, "pselect6"},
	{271, CALL_POLL, "ppoll"},
	{275, CALL_SEND, "splice"},
	{277, CALL_FILE, "sync_file_range"},
	{281, CALL_POLL, "epoll_pwait"},
	{285, CALL_FILE, "fallocate"},
	{288, CALL_RECEIVE, "accept4"},
	{295, CALL_FILE, "preadv"},
	{296, CALL_FILE, "pwritev"},
	{299, CALL_RECEIVE, "recvmmsg"},
	{306, CALL_FILE, "syncfs"},
	{307, CALL_SEND, "sendmmsg"},
	{316, CALL_FILE, "renameat2"},
	{326, CALL_FILE, "copy_file_range"},
	{327, CALL_FILE, "preadv2"},
	{328, CALL_FILE, "pwritev2"},
	{332, CALL_FILE, "statx"},
	{441, CALL_POLL, "epoll_pwait2"},
	{449, CALL_LOCK, "futex_waitv"},
	{455, CALL_LOCK, "futex_wait"},
};

static const struct call *find(uint16_t call)
{
	size_t low = 0, high = sizeof(calls) / sizeof(calls[0]);

	if (call == 0 || call == TAILOR_CALL_NONE)
		return NULL;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (calls[middle].number < call - 1)
			low = middle + 1;
		else
			high = middle;
	}
	return low < sizeof(calls) / sizeof(calls[0]) && calls[low].number == call - 1 ? &calls[low] : NULL;
}

enum call_family call_family(uint16_t call)
{
	const struct call *known = find(call);

	if (call == TAILOR_CALL_NONE)
		return CALL_EXCEPTION;
	return known ? (enum call_family)known->family : CALL_UNKNOWN;
}

const char *call_name(uint16_t call, char *buffer, size_t size)
{
	const struct call *known = find(call);

	if (call == TAILOR_CALL_NONE)
		return "a page fault";
	if (known)
		return known->name;
	if (call == 0)
		return "";
	snprintf(buffer, size, "system call %u", call - 1u);
	return buffer;
}
