/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/kernel_uprobe.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/cleanup.h"
#include "collect/kernel_thread.h"
#include "collect/kernel_usdt.h"

/* As many as processes can be traced; and those that are being forgotten. */
#define FOLLOWED_MAX 320
#define TYPE_FILE "/sys/bus/event_source/devices/uprobe/type"
#define LIBRARY "/libjvm.so"
#define NICE 10
/*
 * How long closing waits for what is just being begun or ended, which takes a fraction of that. The library's file system may be one that the
 * traced process itself serves (FUSE), and then the thread waits for as long as that process likes.
 */
#define CLOSE_S 2

/* What listens at one place of a process; at all of them, where the kernel can do that at once. */
struct listener {
	int event; /* perf_event_open()'s, or -1 */
	int link;  /* of the program to it */
};

/*
 * A part of union bpf_attr (Linux 6.6), which older headers lack, for BPF_LINK_CREATE. It takes no right beyond those that loading the
 * program took, where perf_event_open() takes CAP_PERFMON, and since 6.16 CAP_SYS_ADMIN.
 */
struct link_many {
	uint32_t program;
	uint32_t unused;
	uint32_t attach_type;
	uint32_t unused_flags;
	uint64_t path;
	uint64_t offsets;
	uint64_t counter_offsets;
	uint64_t cookies;
	uint32_t count;
	uint32_t flags;
	uint32_t pid;
	uint32_t padding;
};

struct followed {
	pid_t pid;
	enum { FREE = 0, WAITING, SETTLED, ENDED } state; /* only the thread settles and frees */
	int result;                                       /* once settled: 1 or a negative errno */
	struct listener listeners[TAILOR_USDT_MAX];       /* the thread's */
	size_t count;
};

struct tailor_uprobes {
	int program;
	int type; /* for perf_event_open(); 0: all places are linked at once */
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	int is_running;
	int stop;
	int ended;     /* the thread touches nothing of this any more */
	int abandoned; /* it is the thread that releases it */
	pthread_t thread;
	struct followed followed[FOLLOWED_MAX];
};

int tailor_uprobes_type(void)
{
	cleanup_fclose FILE *file = fopen(TYPE_FILE, "re");
	int type;

	if (!file)
		return -errno;
	return fscanf(file, "%d", &type) == 1 && type > 0 ? type : -EINVAL;
}

/* The path of a process's libjvm.so as that process sees it, from the line of a mapping that holds code. */
static int library_path(char *line, const char **ret_path)
{
	char *path = strchr(line, '/'), rights[5];
	size_t length;

	if (!path || sscanf(line, "%*s %4s", rights) != 1 || rights[2] != 'x')
		return -ENOENT;
	path[strcspn(path, "\n")] = '\0';
	length = strlen(path);
	if (length >= sizeof(LIBRARY " (deleted)") - 1 && strcmp(path + length - (sizeof(LIBRARY " (deleted)") - 1), LIBRARY " (deleted)") == 0)
		return -ESTALE; /* what has that name now is another file */
	if (length < sizeof(LIBRARY) - 1 || strcmp(path + length - (sizeof(LIBRARY) - 1), LIBRARY) != 0)
		return -ENOENT;
	*ret_path = path;
	return 0;
}

/*
 * Opens the file by its name in the process's own root: it may be in a container. What has that name by now may be anything that the
 * process could mount or rename there: a FIFO's other end would be let go on, and some devices act on being opened. So it is opened only
 * when it is known to be a file.
 */
static int open_in_root(pid_t pid, const char *path)
{
	char name[PATH_MAX + 32];
	cleanup_close int place = -1;
	struct stat status;
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/root%s", (int)pid, path);
	place = open(name, O_PATH | O_CLOEXEC | O_NOFOLLOW);
	if (place < 0 || fstat(place, &status) != 0)
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -ENOEXEC;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", place);
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* Opens the libjvm.so that the process runs. Returns a descriptor or a negative errno. */
static int open_library(pid_t pid)
{
	char name[32];
	cleanup_fclose FILE *maps = NULL;
	cleanup_free char *line = NULL;
	size_t size = 0;
	int result = -ENOENT;

	snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	maps = fopen(name, "re");
	if (!maps)
		return -errno;
	while (result == -ENOENT && getline(&line, &size, maps) >= 0) {
		const char *path;

		result = library_path(line, &path);
		if (result == 0)
			result = open_in_root(pid, path);
	}
	return result;
}

static int listen_everywhere(const struct tailor_uprobes *uprobes, pid_t pid, const char *library, const struct tailor_usdt *places, int count,
                             struct listener *ret_listener)
{
	uint64_t offsets[TAILOR_USDT_MAX], cookies[TAILOR_USDT_MAX];
	struct link_many link = {
		.program = (uint32_t)uprobes->program,
		.attach_type = TAILOR_ATTACH_UPROBE_MULTI,
		.path = (uint64_t)(uintptr_t)library,
		.offsets = (uint64_t)(uintptr_t)offsets,
		.cookies = (uint64_t)(uintptr_t)cookies,
		.count = (uint32_t)count,
		.pid = (uint32_t)pid,
	};

	for (int i = 0; i < count; i++) {
		offsets[i] = places[i].offset;
		cookies[i] = places[i].cookie;
	}
	ret_listener->event = -1;
	ret_listener->link = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &link, sizeof(link));
	return ret_listener->link < 0 ? -errno : 0;
}

static int listen_at(const struct tailor_uprobes *uprobes, pid_t pid, const char *library, const struct tailor_usdt *place,
                     struct listener *ret_listener)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .perf_event.bpf_cookie = place->cookie);
	cleanup_close int event = -1;
	struct perf_event_attr attribute = {
		.type = (uint32_t)uprobes->type,
		.size = sizeof(attribute),
		/* The program runs whether or not the event counts; a counting one would cost the process at switches. */
		.disabled = 1,
		.config1 = (uint64_t)(uintptr_t)library,
		.config2 = place->offset,
	};

	event = (int)syscall(SYS_perf_event_open, &attribute, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (event < 0)
		return -errno;
	ret_listener->link = bpf_link_create(uprobes->program, event, BPF_PERF_EVENT, &options);
	if (ret_listener->link < 0)
		return -errno;
	ret_listener->event = take_fd(&event);
	return 0;
}

static void stop_listening(struct followed *followed)
{
	while (followed->count) {
		const struct listener *listener = &followed->listeners[--followed->count];

		close(listener->link);
		if (listener->event >= 0)
			close(listener->event);
	}
}

/* All places or none: half of the pairs would be told wrong. */
static int begin_listening(const struct tailor_uprobes *uprobes, struct followed *followed)
{
	struct tailor_usdt places[TAILOR_USDT_MAX];
	cleanup_close int library = open_library(followed->pid);
	int count = library < 0 ? library : tailor_usdt_find(library, places);
	char name[32];
	int error = 0;

	if (count < 0)
		return count;
	/* The very file that was looked into, whatever its name stands for now. */
	snprintf(name, sizeof(name), "/proc/self/fd/%d", library);
	if (!uprobes->type) {
		error = listen_everywhere(uprobes, followed->pid, name, places, count, &followed->listeners[0]);
		followed->count = !error;
		return error ? error : 1;
	}
	for (int i = 0; i < count && !error; i++) {
		error = listen_at(uprobes, followed->pid, name, &places[i], &followed->listeners[i]);
		followed->count += !error;
	}
	if (error)
		stop_listening(followed);
	return error ? error : 1;
}

/* What is to be done next; NULL: nothing. */
static struct followed *next_work(struct tailor_uprobes *uprobes)
{
	for (size_t i = 0; i < FOLLOWED_MAX; i++) {
		if (uprobes->followed[i].state == WAITING || uprobes->followed[i].state == ENDED)
			return &uprobes->followed[i];
	}
	return NULL;
}

static void work_at(struct tailor_uprobes *uprobes, struct followed *followed)
{
	int ended = followed->state == ENDED;
	int result = 0;

	pthread_mutex_unlock(&uprobes->lock);
	if (ended)
		stop_listening(followed);
	else
		result = begin_listening(uprobes, followed);
	pthread_mutex_lock(&uprobes->lock);
	if (ended)
		*followed = (struct followed){0};
	else if (followed->state == WAITING) /* else it was forgotten meanwhile */
		followed->state = SETTLED;
	followed->result = result;
}

static void release(struct tailor_uprobes *uprobes)
{
	for (size_t i = 0; i < FOLLOWED_MAX; i++)
		stop_listening(&uprobes->followed[i]);
	pthread_cond_destroy(&uprobes->changed);
	pthread_mutex_destroy(&uprobes->lock);
	close(uprobes->program);
	free(uprobes);
}

static void *run(void *context)
{
	struct tailor_uprobes *uprobes = context;
	struct followed *followed;
	int abandoned;

	prctl(PR_SET_NAME, "uprobes");
	setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
	pthread_mutex_lock(&uprobes->lock);
	while (!uprobes->stop) {
		followed = next_work(uprobes);
		if (followed)
			work_at(uprobes, followed);
		else
			pthread_cond_wait(&uprobes->changed, &uprobes->lock);
	}
	uprobes->ended = 1;
	abandoned = uprobes->abandoned;
	pthread_mutex_unlock(&uprobes->lock);
	if (abandoned)
		release(uprobes);
	return NULL;
}

int tailor_uprobes_open(int program, int at_once, struct tailor_uprobes **ret_uprobes)
{
	struct tailor_uprobes *uprobes;
	int type = at_once ? 0 : tailor_uprobes_type();

	if (type < 0)
		return type;
	uprobes = calloc(1, sizeof(*uprobes));
	if (!uprobes)
		return -ENOMEM;
	/* One's own: the caller's may be closed while the thread cannot be stopped. */
	uprobes->program = fcntl(program, F_DUPFD_CLOEXEC, 0);
	if (uprobes->program < 0) {
		int error = errno;

		free(uprobes);
		return -error;
	}
	uprobes->type = type;
	pthread_mutex_init(&uprobes->lock, NULL);
	pthread_cond_init(&uprobes->changed, NULL);
	*ret_uprobes = uprobes;
	return 0;
}

/* Whether the thread has ended. If it has not in time, it releases all when it does; the process's end does not wait for it. */
static int end_thread(struct tailor_uprobes *uprobes)
{
	struct timespec until;
	int ended;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += CLOSE_S;
	if (pthread_clockjoin_np(uprobes->thread, NULL, CLOCK_MONOTONIC, &until) == 0)
		return 1;
	pthread_mutex_lock(&uprobes->lock);
	ended = uprobes->ended;
	uprobes->abandoned = !ended;
	if (!ended)
		pthread_detach(uprobes->thread);
	pthread_mutex_unlock(&uprobes->lock);
	if (ended)
		pthread_join(uprobes->thread, NULL);
	return ended;
}

void tailor_uprobes_close(struct tailor_uprobes *uprobes)
{
	if (!uprobes)
		return;
	pthread_mutex_lock(&uprobes->lock);
	uprobes->stop = 1;
	pthread_cond_signal(&uprobes->changed);
	pthread_mutex_unlock(&uprobes->lock);
	if (!uprobes->is_running || end_thread(uprobes))
		release(uprobes);
}

static int start_thread(struct tailor_uprobes *uprobes)
{
	int error;

	if (uprobes->is_running)
		return 0;
	error = tailor_kernel_thread_start(&uprobes->thread, run, uprobes);
	uprobes->is_running = !error;
	return error;
}

/* The process's entry, or with pid 0 one that is free; NULL: none. */
static struct followed *find(const struct tailor_uprobes *uprobes, pid_t pid)
{
	for (size_t i = 0; i < FOLLOWED_MAX; i++) {
		const struct followed *followed = &uprobes->followed[i];

		if (pid ? followed->pid == pid && followed->state != ENDED && followed->state != FREE : followed->state == FREE)
			return (struct followed *)followed;
	}
	return NULL;
}

void tailor_uprobes_follow(struct tailor_uprobes *uprobes, pid_t pid)
{
	struct followed *followed;

	pthread_mutex_lock(&uprobes->lock);
	followed = find(uprobes, pid) ? NULL : find(uprobes, 0);
	if (followed && start_thread(uprobes) == 0) {
		*followed = (struct followed){.pid = pid, .state = WAITING};
		pthread_cond_signal(&uprobes->changed);
	}
	pthread_mutex_unlock(&uprobes->lock);
}

void tailor_uprobes_forget(struct tailor_uprobes *uprobes, pid_t pid)
{
	struct followed *followed;

	pthread_mutex_lock(&uprobes->lock);
	followed = find(uprobes, pid);
	if (followed) {
		followed->state = ENDED;
		pthread_cond_signal(&uprobes->changed);
	}
	pthread_mutex_unlock(&uprobes->lock);
}

int tailor_uprobes_state(struct tailor_uprobes *uprobes, pid_t pid)
{
	const struct followed *followed;
	int result;

	pthread_mutex_lock(&uprobes->lock);
	followed = find(uprobes, pid);
	if (!followed)
		result = -ESRCH;
	else
		result = followed->state == SETTLED ? followed->result : 0;
	pthread_mutex_unlock(&uprobes->lock);
	return result;
}
