/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/proxy.h"

const char *tailor_refusal_name(enum tailor_refusal refusal)
{
	switch (refusal) {
	case TAILOR_REFUSED_MALFORMED: return "malformed";
	case TAILOR_REFUSED_HEAD: return "head";
	case TAILOR_REFUSED_BODY: return "body";
	case TAILOR_REFUSED_CLIENT_LATE: return "client-late";
	case TAILOR_REFUSED_DEADLINE: return "deadline";
	case TAILOR_REFUSED_CONNECTIONS: return "connections";
	case TAILOR_REFUSED_PER_ADDRESS: return "per-address";
	case TAILOR_REFUSED_QUEUE_FULL: return "queue-full";
	case TAILOR_REFUSED_QUEUE_LATE: return "queue-late";
	case TAILOR_REFUSED_NO_SERVER: return "no-server";
	case TAILOR_REFUSED_SERVER_FAILED: return "server-failed";
	case TAILOR_REFUSED_SERVER_LATE: return "server-late";
	case TAILOR_REFUSED_MAX_FORWARDS: return "max-forwards";
	case TAILOR_REFUSALS: break;
	}
	return "unknown";
}
