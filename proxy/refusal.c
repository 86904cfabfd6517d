/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/proxy.h"

const char *tailor_refusal_name(enum tailor_refusal refusal)
{
	switch (refusal) {
	case TAILOR_REFUSED_MALFORMED: return "malformed";
	case TAILOR_REFUSED_HEAD: return "head";
	case TAILOR_REFUSED_CLIENT_LATE: return "client-late";
	case TAILOR_REFUSED_DEADLINE: return "deadline";
	case TAILOR_REFUSED_CONNECTIONS: return "connections";
	case TAILOR_REFUSED_NO_SERVER: return "no-server";
	case TAILOR_REFUSED_SERVER_FAILED: return "server-failed";
	case TAILOR_REFUSED_SERVER_LATE: return "server-late";
	case TAILOR_REFUSALS: break;
	}
	return "unknown";
}
