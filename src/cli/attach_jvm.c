/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/attach.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <link.h>
#include <linux/openat2.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <tailor/jvm_page.h>
#include <unistd.h>

#include "base/cleanup.h"

/* One of the agent's threads (jvmagent/notify.c). */
#define AGENT_LIBRARY "/libtailor-agent.so"
#define AGENT_THREAD "tailor-agent\n"
#define AGENT_MEMORY "/memfd:" TAILOR_JVM_MEMORY

static FILE *open_of(pid_t pid, const char *file)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	return fopen(path, "re");
}

/* Copies what stands behind "NAME:" in the process's status. Returns 0 where there is none. */
static int status_line(pid_t pid, const char *name, char *value, size_t size)
{
	cleanup_fclose FILE *status = open_of(pid, "status");
	size_t length = strlen(name);
	char line[512];

	while (status && fgets(line, sizeof(line), status))
		if (strncmp(line, name, length) == 0 && line[length] == ':') {
			const char *text = line + length + 1 + strspn(line + length + 1, " \t");

			snprintf(value, size, "%.*s", (int)strcspn(text, "\n"), text);
			return 1;
		}
	return 0;
}

static const char *user_name(uid_t user, char *name, size_t size)
{
	struct passwd *entry = getpwuid(user);

	if (entry)
		snprintf(name, size, "%s", entry->pw_name);
	else
		snprintf(name, size, "with number %u", (unsigned int)user);
	return name;
}

/* Effective user and group, and the pid in the innermost namespace. */
static int read_identity(struct attach_jvm *jvm)
{
	char users[128], groups[128], pids[256];
	const char *last;
	unsigned int user, group;
	int own;

	if (!status_line(jvm->pid, "Uid", users, sizeof(users)) ||
	    !status_line(jvm->pid, "Gid", groups, sizeof(groups)) || sscanf(users, "%*u %u", &user) != 1 ||
	    sscanf(groups, "%*u %u", &group) != 1)
		return -ESRCH;
	jvm->user = user;
	jvm->group = group;
	jvm->own_pid = jvm->pid;
	if (status_line(jvm->pid, "NSpid", pids, sizeof(pids))) {
		last = strrchr(pids, '\t');
		if (sscanf(last ? last + 1 : pids, "%d", &own) == 1)
			jvm->own_pid = own;
	}
	return 0;
}

struct mapped {
	int hotspot, other_jvm, agent;
	char socket[sizeof(((struct attach_jvm *)0)->socket)];
};

/* The agent's memory is named after its socket. One of before that did not do so tells nothing. */
static void take_socket(const char *line, struct mapped *mapped)
{
	const char *name = strstr(line, AGENT_MEMORY), *end;

	if (!name)
		return;
	name += strlen(AGENT_MEMORY);
	end = strstr(name, " (deleted)\n");
	if (end)
		snprintf(mapped->socket, sizeof(mapped->socket), "%.*s", (int)(end - name), name);
}

static int read_mappings(pid_t pid, struct mapped *ret_mapped)
{
	cleanup_fclose FILE *maps = open_of(pid, "maps");
	char line[4096];

	memset(ret_mapped, 0, sizeof(*ret_mapped));
	if (!maps)
		return -errno;
	while (fgets(line, sizeof(line), maps)) {
		ret_mapped->hotspot |= strstr(line, "/libjvm.so") != NULL;
		ret_mapped->other_jvm |= strstr(line, "/libj9vm") != NULL;
		ret_mapped->agent |= strstr(line, AGENT_LIBRARY) != NULL;
		take_socket(line, ret_mapped);
	}
	/* Opened before it ended, it reads as an error or as nothing. */
	return ferror(maps) ? -EIO : 0;
}

static int has_thread(pid_t pid, const char *comm)
{
	char path[64], line[32];
	DIR *tasks;
	struct dirent *entry;
	int found = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && !found && (entry = readdir(tasks))) {
		char file[320];

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(file, sizeof(file), "task/%s/comm", entry->d_name);
		cleanup_fclose FILE *name = open_of(pid, file);
		found = name && fgets(line, sizeof(line), name) && strcmp(line, comm) == 0;
	}
	if (tasks)
		closedir(tasks);
	return found;
}

int attach_jvm_catches_quit(pid_t pid)
{
	char mask[32];
	unsigned long long caught;

	return status_line(pid, "SigCgt", mask, sizeof(mask)) && sscanf(mask, "%llx", &caught) == 1 &&
	       (caught >> (SIGQUIT - 1) & 1);
}

/* The last word counts. What comes from other files or the environment is not looked for: then it shows in silence. */
int attach_jvm_refuses_to_listen(pid_t pid)
{
	cleanup_fclose FILE *words = open_of(pid, "cmdline");
	cleanup_free char *word = NULL;
	size_t size = 0;
	int refuses = 0;

	while (words && getdelim(&word, &size, 0, words) > 0) {
		if (strcmp(word, "-XX:+DisableAttachMechanism") == 0)
			refuses = 1;
		else if (strcmp(word, "-XX:-DisableAttachMechanism") == 0)
			refuses = 0;
	}
	return refuses;
}

int attach_jvm_is_stopped(pid_t pid)
{
	char state[64] = "";

	return status_line(pid, "State", state, sizeof(state)) && (state[0] == 'T' || state[0] == 't');
}

static int open_directories(struct attach_jvm *jvm)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	char path[64];

	/* Its own root in its own mounts: a container's, or what a service manager has put in the place of /tmp. */
	snprintf(path, sizeof(path), "/proc/%d/root", (int)jvm->pid);
	jvm->root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (jvm->root < 0)
		return -errno;
	jvm->tmp = (int)syscall(SYS_openat2, jvm->root, "tmp", &how, sizeof(how));
	return jvm->tmp < 0 ? -errno : 0;
}

static int look(struct attach_jvm *jvm, char *error, size_t error_size)
{
	struct mapped mapped;
	char name[64];
	int pid = (int)jvm->pid, r;

	jvm->fd = (int)syscall(SYS_pidfd_open, jvm->pid, 0);
	if (jvm->fd < 0) {
		r = -errno;
		snprintf(error, error_size,
		         r == -ESRCH ? "there is no process %d"
		                     : "%d is no process but one of its threads; name the process",
		         pid);
		return r;
	}
	r = read_identity(jvm);
	if (r < 0) {
		snprintf(error, error_size, "process %d has just ended", pid);
		return r;
	}
	if (geteuid() != 0 && geteuid() != jvm->user) {
		snprintf(error, error_size, "process %d belongs to user %s; run this as that user, or as root", pid,
		         user_name(jvm->user, name, sizeof(name)));
		return -EPERM;
	}
	r = read_mappings(jvm->pid, &mapped);
	if (r < 0) {
		snprintf(error, error_size,
		         "cannot read /proc/%d/maps: %s; it takes CAP_SYS_PTRACE, as root has it outside of containers",
		         pid, strerror(-r));
		return r;
	}
	if (mapped.other_jvm || !mapped.hotspot) {
		snprintf(error, error_size, "process %d is %s; the agent works in HotSpot (OpenJDK) only", pid,
		         mapped.other_jvm ? "an OpenJ9 JVM" : "not a JVM (it has no libjvm.so)");
		return -ENOEXEC;
	}
	if (attach_jvm_is_stopped(jvm->pid)) {
		snprintf(error, error_size, "JVM %d is stopped and would not answer; let it go on first: kill -CONT %d",
		         pid, pid);
		return -EBUSY;
	}
	/* A library whose options were wrong stays mapped, and does nothing. */
	jvm->has_agent = mapped.agent && has_thread(jvm->pid, AGENT_THREAD);
	memcpy(jvm->socket, mapped.socket, sizeof(jvm->socket));
	r = open_directories(jvm);
	if (r < 0)
		snprintf(error, error_size,
		         "cannot enter /tmp below /proc/%d/root: %s; the JVM needs it to be attached to", pid,
		         strerror(-r));
	return r;
}

int attach_jvm_open(pid_t pid, struct attach_jvm *ret_jvm, char *error, size_t error_size)
{
	int r;

	*ret_jvm = (struct attach_jvm){.pid = pid, .fd = -1, .root = -1, .tmp = -1};
	r = look(ret_jvm, error, error_size);
	if (r < 0)
		attach_jvm_close(ret_jvm);
	return r;
}

void attach_jvm_close(struct attach_jvm *jvm)
{
	tailor_cleanup_close(&jvm->fd);
	tailor_cleanup_close(&jvm->root);
	tailor_cleanup_close(&jvm->tmp);
}

int attach_become_user(const struct attach_jvm *jvm, char *error, size_t error_size)
{
	if (geteuid() == jvm->user && getegid() == jvm->group)
		return 0;
	if ((geteuid() != 0 || setgroups(0, NULL) == 0) && setresgid(jvm->group, jvm->group, jvm->group) == 0 &&
	    setresuid(jvm->user, jvm->user, jvm->user) == 0)
		return 0;
	snprintf(error, error_size, "cannot become the JVM's user %u and group %u, whom alone it lets attach: %s",
	         (unsigned int)jvm->user, (unsigned int)jvm->group, strerror(errno));
	return -EPERM;
}

static int look_in_root(const struct attach_jvm *jvm, const char *path, struct stat *ret_status)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	cleanup_close int file = (int)syscall(SYS_openat2, jvm->root, path, &how, sizeof(how));

	return file < 0 ? -errno : fstat(file, ret_status);
}

int attach_jvm_is_for_another(const struct attach_jvm *jvm, const char *socket)
{
	struct stat one, other;

	/* From where it looks for a relative path, it alone knows. */
	if (!jvm->has_agent || jvm->socket[0] != '/' || strcmp(jvm->socket, socket) == 0)
		return 0;
	return look_in_root(jvm, jvm->socket, &one) < 0 || look_in_root(jvm, socket, &other) < 0 || one.st_dev != other.st_dev ||
	       one.st_ino != other.st_ino;
}

/* HotSpot gives up guarding its stacks when it is given anything else to load. */
static int is_library(int file)
{
	cleanup_close int ours = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ElfW(Ehdr) head, own;

	if (read(file, &head, sizeof(head)) != sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    head.e_type != ET_DYN)
		return 0;
	/* A library for another machine is refused by the JVM itself where we cannot tell. */
	return ours < 0 || read(ours, &own, sizeof(own)) != sizeof(own) || head.e_machine == own.e_machine;
}

int attach_check_library(const struct attach_jvm *jvm, const char *path, char *error, size_t error_size)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK, .resolve = RESOLVE_IN_ROOT};
	cleanup_close int file = (int)syscall(SYS_openat2, jvm->root, path, &how, sizeof(how));
	char name[64];
	struct stat status;
	int r;

	if (file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) && is_library(file))
		return 0;
	r = file < 0 ? -errno : -EINVAL;
	user_name(jvm->user, name, sizeof(name));
	if (r == -EACCES)
		snprintf(error, error_size,
		         "the JVM's user %s cannot read %s; copy it where that user can, and name it with --agent",
		         name, path);
	else if (r == -ENOENT || r == -ENOTDIR)
		snprintf(error, error_size,
		         "the JVM does not see %s (it may be in a container); copy it there, and name it with --agent "
		         "as the JVM sees it",
		         path);
	else
		snprintf(error, error_size, "the JVM cannot load %s: %s; name the agent's library with --agent", path,
		         r == -EINVAL ? "it is no shared library of this machine" : strerror(-r));
	return r;
}
