/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/process.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

static void cleanup_directory(DIR **directory)
{
	if (*directory)
		closedir(*directory);
}
#define cleanup_closedir __attribute__((cleanup(cleanup_directory)))

/* TCP_LISTEN as /proc/net/tcp prints it. */
#define STATE_LISTEN 0x0a

/* How well a listener fits the address; the kernel gives a connection to the best. */
enum fit { FIT_NONE, FIT_WILDCARD6, FIT_WILDCARD4, FIT_EXACT };

struct listener {
	enum fit fit;
	uint64_t inode;
};

static enum fit fit_of(const uint8_t bound[16], int bound_is_ip6, const uint8_t wanted[16])
{
	static const uint8_t any6[16];
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	static const uint8_t any4[4];
	int wants_ip4 = memcmp(wanted, mapped, sizeof(mapped)) == 0;

	if (memcmp(bound, wanted, 16) == 0)
		return FIT_EXACT;
	/* [::] takes IPv4 too unless it is IPV6_V6ONLY, which /proc does not tell. */
	if (bound_is_ip6)
		return memcmp(bound, any6, 16) == 0 ? FIT_WILDCARD6 : FIT_NONE;
	return wants_ip4 && memcmp(bound + 12, any4, 4) == 0 ? FIT_WILDCARD4 : FIT_NONE;
}

/* "0100007F" or four such words: each is 32 bits of the address in this machine's byte order. */
static int parse_hex_address(const char *text, int is_ip6, uint8_t ret_ip[16])
{
	uint32_t words[4] = {0, 0, htonl(0xffff), 0};
	int first = is_ip6 ? 0 : 3;

	if (strlen(text) != (is_ip6 ? 32u : 8u))
		return -EINVAL;
	for (int i = first; i < 4; i++) {
		if (sscanf(text + (i - first) * 8, "%8" SCNx32, &words[i]) != 1)
			return -EINVAL;
	}
	memcpy(ret_ip, words, 16);
	return 0;
}

/* Improves *best by the listeners in one of the kernel's tables; a missing table (no IPv6) has none. Returns 0 or a negative errno. */
static int search_table(const char *path, int is_ip6, const uint8_t wanted[16], uint16_t port, struct listener *best)
{
	cleanup_fclose FILE *file = fopen(path, "re");
	char line[512];

	if (!file)
		return errno == ENOENT ? 0 : -errno;
	while (fgets(line, sizeof(line), file)) {
		char address[33];
		unsigned int bound_port, state;
		uint64_t inode;
		uint8_t bound[16];
		enum fit fit;

		if (sscanf(line, " %*u: %32[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %*u %*u %" SCNu64,
		           address, &bound_port, &state, &inode) != 4)
			continue;
		if (state != STATE_LISTEN || bound_port != port || parse_hex_address(address, is_ip6, bound) != 0)
			continue;
		fit = fit_of(bound, is_ip6, wanted);
		if (fit > best->fit)
			*best = (struct listener){.fit = fit, .inode = inode};
	}
	return 0;
}

/* Errors of this process's own, which say nothing about what it looks at. */
static int is_shortage(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

/* Is a descriptor of the process that socket, as far as this process may see? Or a negative errno. */
static int process_holds(const char *pid, const char *socket_link)
{
	char path[64];
	cleanup_closedir DIR *directory = NULL;
	struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
	directory = opendir(path);
	if (!directory && is_shortage(errno))
		return -errno;
	if (!directory)
		return 0; /* not ours to look into, or it has just ended */
	while ((entry = readdir(directory))) {
		char link[64];
		ssize_t length = readlinkat(dirfd(directory), entry->d_name, link, sizeof(link) - 1);

		if (length < 0)
			continue;
		link[length] = '\0';
		if (strcmp(link, socket_link) == 0)
			return 1;
	}
	return 0;
}

/* The known process, or the one with the lowest id: where a parent has handed its listener to children, that is mostly the parent. */
static int find_holder(uint64_t inode, pid_t *known)
{
	cleanup_closedir DIR *proc = opendir("/proc");
	char socket_link[64], known_text[16];
	struct dirent *entry;
	pid_t found = 0;
	int holds;

	if (!proc)
		return -errno;
	snprintf(socket_link, sizeof(socket_link), "socket:[%" PRIu64 "]", inode);
	snprintf(known_text, sizeof(known_text), "%d", (int)*known);
	/* Mostly it still is, and what all others hold need not be looked at. */
	if (*known && process_holds(known_text, socket_link) == 1)
		return 0;
	while ((entry = readdir(proc))) {
		pid_t pid = (pid_t)atoi(entry->d_name);

		if (!isdigit((unsigned char)entry->d_name[0]) || (found && pid > found))
			continue;
		holds = process_holds(entry->d_name, socket_link);
		if (holds < 0)
			return holds;
		if (holds)
			found = pid;
	}
	if (!found)
		return -EACCES; /* somebody listens, in a process that cannot be looked into */
	*known = found;
	return 0;
}

/*
 * Does this host have the address? The kernel binds to no other; without this, a wildcard listener would be taken for a server
 * on another host that has the same port. Returns 0, -ESRCH if not, or what is short here.
 */
static int check_own_address(const struct tailor_address *address)
{
	struct sockaddr_storage any_port = address->storage;
	cleanup_close int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	((struct sockaddr_in *)&any_port)->sin_port = 0; /* sin6_port is at the same place */
	if (fd < 0)
		return is_shortage(errno) ? -errno : -ESRCH;
	return bind(fd, (struct sockaddr *)&any_port, address->length) == 0 ? 0 : -ESRCH;
}

int tailor_process_listening(const struct tailor_address *address, pid_t *pid)
{
	uint16_t port = tailor_address_port(address);
	struct listener best = {.fit = FIT_NONE};
	uint8_t wanted[16];
	int error;

	if (port == 0)
		return -ESRCH;
	error = check_own_address(address);
	if (error)
		return error;
	tailor_address_ip(address, wanted);
	error = search_table("/proc/self/net/tcp", 0, wanted, port, &best);
	if (error == 0)
		error = search_table("/proc/self/net/tcp6", 1, wanted, port, &best);
	if (error)
		return error;
	return best.fit == FIT_NONE ? -ESRCH : find_holder(best.inode, pid);
}

int tailor_process_tids(pid_t pid, void (*found)(void *context, pid_t tid), void *context)
{
	char path[64];
	cleanup_closedir DIR *tasks = NULL;
	struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	if (!tasks)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((entry = readdir(tasks))) {
		if (isdigit((unsigned char)entry->d_name[0]))
			found(context, (pid_t)atoi(entry->d_name));
	}
	return 0;
}

int tailor_process_comm(pid_t pid, pid_t tid, char ret_comm[TAILOR_COMM_BYTES])
{
	char path[64];
	cleanup_close int fd = -1;
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	length = read(fd, ret_comm, TAILOR_COMM_BYTES); /* with a newline behind it */
	if (length <= 0)
		return length < 0 ? -errno : -ESRCH;
	ret_comm[length - 1] = '\0';
	return 0;
}

struct threads_found {
	void (*found)(void *context, pid_t tid, const char *comm);
	void *context;
	pid_t pid;
};

static void tell_comm(void *context, pid_t tid)
{
	const struct threads_found *threads = context;
	char comm[TAILOR_COMM_BYTES];

	if (tailor_process_comm(threads->pid, tid, comm) == 0)
		threads->found(threads->context, tid, comm);
}

int tailor_process_threads(pid_t pid, void (*found)(void *context, pid_t tid, const char *comm), void *context)
{
	struct threads_found threads = {.found = found, .context = context, .pid = pid};

	return tailor_process_tids(pid, tell_comm, &threads);
}
