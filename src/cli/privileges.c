/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/privileges.h"

#include <cap-ng.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/takeover_wire.h"

/* What was made as root must be writable afterwards. */
static int give_away(const char *key, const char *path, const struct tailor_config *config, char *error, size_t error_size)
{
	/* A socket's group is who else may connect to it. */
	gid_t group = strcmp(key, "agent.socket") == 0 && config->has_agent_group ? config->agent_group : config->user_group;

	if (chown(path, config->user, group) == 0)
		return 0;
	snprintf(error, error_size, "%s: cannot give %s to the user that is to write it: %s; choose another path", key, path,
	         strerror(errno));
	return -errno;
}

static int give_files(const struct tailor_config *config, char *error, size_t error_size)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int ret = give_away("timelines.path", config->timelines_path, config, error, error_size);

	if (ret == 0 && config->has_access_log && strncmp(config->access_log_path, "/dev/", 5) != 0)
		ret = give_away("access_log.path", config->access_log_path, config, error, error_size);
	if (ret == 0 && config->has_agent)
		ret = give_away("agent.socket", config->agent_socket, config, error, error_size);
	if (ret == 0 && config->has_admin && config->admin.storage.ss_family == AF_UNIX)
		ret = give_away("admin.listen", ((const struct sockaddr_un *)&config->admin.storage)->sun_path, config, error, error_size);
	/* It may not be there. */
	if (ret == 0 && takeover_path(config, path, sizeof(path)) == 0 && access(path, F_OK) == 0)
		ret = give_away("timelines.path", path, config, error, error_size);
	return ret;
}

static int is_kept(int capability, unsigned int needs)
{
	switch (capability) {
	case CAP_SYS_PTRACE:
	case CAP_DAC_READ_SEARCH: return 1;
	case CAP_PERFMON: return (needs & PRIVILEGES_PERFMON) != 0;
	case CAP_SYS_NICE: return (needs & PRIVILEGES_NICE) != 0;
	default: return 0;
	}
}

int privileges_drop(const struct tailor_config *config, unsigned int needs, char *error, size_t error_size)
{
	int ret = 0;

	if (geteuid() != 0) {
		if (config->has_user && config->user != geteuid()) {
			snprintf(error, error_size, "user: only root can become another user; start it as root, or leave the key out");
			return -EPERM;
		}
		return 0;
	}
	if (config->has_user)
		ret = give_files(config, error, error_size);
	if (ret < 0)
		return ret;
	capng_clear(CAPNG_SELECT_BOTH);
	/* A container may not have them to keep. */
	for (int capability = 0; capability <= CAP_LAST_CAP; capability++)
		if (is_kept(capability, needs) && prctl(PR_CAPBSET_READ, capability) == 1)
			capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, (unsigned int)capability);
	if (config->has_user)
		ret = capng_change_id((int)config->user, (int)config->user_group, CAPNG_DROP_SUPP_GRP | CAPNG_CLEAR_BOUNDING);
	else
		ret = capng_apply(CAPNG_SELECT_BOTH);
	if (ret != 0) {
		snprintf(error, error_size, "cannot give up root's rights (libcap-ng says %d); run in a place where capset(2) is allowed", ret);
		return -EPERM;
	}
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	/* Changing the user makes the process undumpable, and the agents' hub would find /proc/self closed to itself. */
	(void)prctl(PR_SET_DUMPABLE, 1);
	return 0;
}
