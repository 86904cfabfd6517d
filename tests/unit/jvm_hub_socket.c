/* SPDX-License-Identifier: Apache-2.0 */
/* The hub's socket: whose it is, who may connect, and what it does with what is in its place. */
#include "jvm_hub_here.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void the_socket_is_for_its_owner_only_and_goes_with_the_hub(void **state)
{
	struct tailor_jvm_hub *hub = new_hub();
	struct stat status;

	(void)state;
	assert_int_equal(lstat(path, &status), 0);
	assert_true(S_ISSOCK(status.st_mode));
	assert_int_equal(status.st_mode & 07777, 0600);
	tailor_jvm_hub_close(hub);
	assert_int_equal(lstat(path, &status), -1);
}

/* Whether a process of another user, in that group, can connect: 0 or the errno. */
static int connect_as(uid_t user, gid_t group)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	pid_t child = fork();
	int status, fd;

	assert_true(child >= 0);
	if (child == 0) {
		fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		strcpy(address.sun_path, path);
		if (fd < 0 || setgroups(1, &group) != 0 || setgid(group) != 0 || setuid(user) != 0)
			_exit(255);
		_exit(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? 0 : errno);
	}
	other_peer = child;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* JVMs run as users of their own; the proxy runs as root, or as a user who shares a group with them. */
static void a_group_opens_the_socket_to_its_members_and_to_nobody_else(void **state)
{
	const gid_t group = 54321, other = 54322;
	const uid_t user = 54323, proxy = 54324;
	struct tailor_jvm_hub *hub;
	struct stat status;
	char error[256] = "";

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(directory, 0755), 0);
	hub = new_hub();
	assert_int_equal(connect_as(user, group), EACCES);
	tailor_jvm_hub_close(hub);

	assert_int_equal(tailor_jvm_hub_open(path, group, &events, &hub, error, sizeof(error)), 0);
	assert_int_equal(lstat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0660);
	assert_int_equal(status.st_gid, group);
	assert_int_equal(connect_as(user, other), EACCES);
	assert_int_equal(connect_as(user, group), 0);
	assert_int_equal(seteuid(proxy), 0);
	tailor_jvm_hub_dispatch(hub);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(seen.refused, 0);
	/* Nor when somebody opens it wider by hand: who is not of the group is refused, and another may try. */
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(connect_as(user, other), 0);
	tailor_jvm_hub_dispatch(hub);
	assert_int_equal(seen.refused, 1);
	assert_int_equal(connect_as(user, group), 0);
	tailor_jvm_hub_dispatch(hub);
	assert_int_equal(seen.refused, 1);
	tailor_jvm_hub_close(hub);

	/* Somebody who is not of the group cannot open it to the group, and leaves no file behind. */
	assert_int_equal(chmod(directory, 0777), 0);
	assert_int_equal(seteuid(proxy), 0);
	assert_int_equal(tailor_jvm_hub_open(path, group, &events, &hub, error, sizeof(error)), -EPERM);
	assert_int_equal(seteuid(0), 0);
	assert_non_null(strstr(error, "member of the group"));
	assert_int_equal(lstat(path, &status), -1);
	assert_int_equal(chmod(directory, 0700), 0);
}

static void a_live_socket_is_respected_and_a_stale_one_replaced(void **state)
{
	struct tailor_jvm_hub *hub = new_hub(), *second = NULL;
	char error[256] = "";
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	(void)state;
	assert_int_equal(tailor_jvm_hub_open(path, TAILOR_LISTEN_OWNER, &events, &second, error, sizeof(error)), -EADDRINUSE);
	assert_non_null(strstr(error, path));
	assert_non_null(strstr(error, "another proxy"));
	assert_null(second);
	tailor_jvm_hub_dispatch(hub); /* the probe's connection harms nobody */
	tailor_jvm_hub_close(hub);

	fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	strcpy(address.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	close(fd); /* its file stays, as after a kill */
	assert_int_equal(access(path, F_OK), 0);
	hub = new_hub();
	close(connect_peer());
	dispatch(hub);
	tailor_jvm_hub_close(hub);
}

static void a_file_that_is_no_socket_is_left_alone(void **state)
{
	struct tailor_jvm_hub *hub = NULL;
	char error[256] = "";
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	(void)state;
	assert_int_equal(write(fd, "precious", 8), 8);
	close(fd);
	assert_int_equal(tailor_jvm_hub_open(path, TAILOR_LISTEN_OWNER, &events, &hub, error, sizeof(error)), -EEXIST);
	assert_int_equal(access(path, F_OK), 0);
	unlink(path);
}

static void a_successors_socket_is_not_removed(void **state)
{
	struct tailor_jvm_hub *hub = new_hub(), *successor;

	(void)state;
	unlink(path);
	successor = new_hub();
	tailor_jvm_hub_close(hub);
	assert_int_equal(access(path, F_OK), 0);
	tailor_jvm_hub_close(successor);
	assert_int_equal(access(path, F_OK), -1);
}

static void errors_name_the_path_and_the_remedy(void **state)
{
	struct tailor_jvm_hub *hub = NULL;
	char error[256] = "", longest[200];

	(void)state;
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	assert_int_equal(tailor_jvm_hub_open(longest, TAILOR_LISTEN_OWNER, &events, &hub, error, sizeof(error)), -ENAMETOOLONG);
	assert_non_null(strstr(error, "xxx"));
	assert_int_equal(tailor_jvm_hub_open("/nonexistent/agent.sock", TAILOR_LISTEN_OWNER, &events, &hub, error, sizeof(error)), -ENOENT);
	assert_non_null(strstr(error, "create its directory"));
	assert_null(hub);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_socket_is_for_its_owner_only_and_goes_with_the_hub),
		cmocka_unit_test(a_group_opens_the_socket_to_its_members_and_to_nobody_else),
		cmocka_unit_test(a_live_socket_is_respected_and_a_stale_one_replaced),
		cmocka_unit_test(a_file_that_is_no_socket_is_left_alone),
		cmocka_unit_test(a_successors_socket_is_not_removed),
		cmocka_unit_test(errors_name_the_path_and_the_remedy),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
