/* SPDX-License-Identifier: Apache-2.0 */
#include "base/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

int tailor_peer_get(int fd, struct tailor_peer *ret_peer)
{
	struct ucred credentials;
	socklen_t length = sizeof(credentials);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
		return -errno;
	*ret_peer = (struct tailor_peer){credentials.pid, credentials.uid, credentials.gid};
	return 0;
}

bool tailor_peer_is_trusted(const struct tailor_peer *peer)
{
	return peer->uid == 0 || peer->uid == geteuid();
}

bool tailor_peer_in_group(int fd, const struct tailor_peer *peer, gid_t group)
{
	cleanup_free gid_t *groups = NULL;
	socklen_t length = 0;

	if (peer->gid == group)
		return true;
	/* Says with ERANGE how much room it needs. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &length) == 0 || errno != ERANGE)
		return false;
	groups = malloc(length);
	if (!groups || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &length) != 0)
		return false;
	for (size_t i = 0; i < length / sizeof(*groups); i++) {
		if (groups[i] == group)
			return true;
	}
	return false;
}
