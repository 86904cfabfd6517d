/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check_places.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <tailor/store.h>

#include "base/directory.h"
#include "base/printable.h"

static void warn(const char *config_path, const char *key, const char *place, int error, const char *in_the_way)
{
	char text[TAILOR_CONFIG_PATH_BYTES + 256];

	if (error == -ENOENT || error == -ENOTDIR)
		snprintf(text, sizeof(text), "there is no directory to make %s in; make it first", place);
	else if (error == -EINVAL || error == -EEXIST || error == -EISDIR)
		snprintf(text, sizeof(text), "%s %s", place, in_the_way);
	else
		snprintf(text, sizeof(text), "cannot open %s: %s", place, strerror(-error));
	fprintf(stderr, "%s: warning: the proxy would not start: %s: %s\n", config_path, key, tailor_printable_line(text));
}

/* What tailor_listen() fails on, without asking whether somebody listens: that would disturb a proxy that runs. */
static int judge_socket(const char *path)
{
	struct stat file;

	if (lstat(path, &file) != 0)
		return errno == ENOENT ? tailor_directory_probe(path) : -errno;
	return S_ISSOCK(file.st_mode) ? 0 : -EEXIST;
}

static int judge_log(const char *path)
{
	struct stat file;

	if (stat(path, &file) != 0)
		return errno == ENOENT ? tailor_directory_probe(path) : -errno;
	return S_ISDIR(file.st_mode) ? -EISDIR : 0;
}

/* The proxy may run as another user than who checks. */
static bool is_certain(int error)
{
	return error && error != -EACCES && error != -EPERM;
}

void check_places(const char *config_path, const struct tailor_config *config)
{
	const struct sockaddr_un *admin = (const struct sockaddr_un *)&config->admin.storage;
	const struct {
		const char *key, *place;
		int error;
		const char *in_the_way;
	} places[] = {
		{"timelines.path", config->timelines_path, tailor_store_writer_probe(config->timelines_path),
	         "is not a timeline store; choose an empty or new directory"},
		{"access_log.path", config->access_log_path, config->has_access_log ? judge_log(config->access_log_path) : 0,
	         "is a directory; choose another path"},
		{"admin.listen", admin->sun_path, config->has_admin && admin->sun_family == AF_UNIX ? judge_socket(admin->sun_path) : 0,
	         "is a file that is no socket; choose another path"},
		{"agent.socket", config->agent_socket, config->has_agent ? judge_socket(config->agent_socket) : 0,
	         "is a file that is no socket; choose another path"},
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (is_certain(places[i].error))
			warn(config_path, places[i].key, places[i].place, places[i].error, places[i].in_the_way);
	}
}
