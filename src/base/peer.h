/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a Unix socket. */
#ifndef TAILOR_BASE_PEER_H
#define TAILOR_BASE_PEER_H

#include <stdbool.h>
#include <sys/types.h>

struct tailor_peer {
	pid_t pid;
	uid_t uid;
	gid_t gid;
};

/*
 * Who connected, or, on the side that connected, who listened (SO_PEERCRED, unix(7): as it was then). Returns 0, or a negative
 * errno; on a socket that is none of the Unix ones, ids of 0 or -1.
 */
int tailor_peer_get(int fd, struct tailor_peer *ret_peer);

/* Whether that is root or this process's own user: whoever has the other rights of these may have this one, too. */
bool tailor_peer_is_trusted(const struct tailor_peer *peer);

/* Whether the peer of that connection is in the group, as its primary or another one (SO_PEERGROUPS). */
bool tailor_peer_in_group(int fd, const struct tailor_peer *peer, gid_t group);

#endif /* TAILOR_BASE_PEER_H */
