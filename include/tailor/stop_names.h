/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the kinds of stop.h, for people; as event_names.h. User space only. */
#ifndef TAILOR_STOP_NAMES_H
#define TAILOR_STOP_NAMES_H

#include <tailor/stop.h>

/* "gc", "safepoint", "signal", "stall", "gone"; "none", and "unknown" for a value outside the enum. Never NULL. */
static inline const char *tailor_stop_kind_name(enum tailor_stop_kind kind)
{
	switch (kind) {
	case TAILOR_STOP_NONE: return "none";
	case TAILOR_STOP_SAFEPOINT: return "safepoint";
	case TAILOR_STOP_SIGNAL: return "signal";
	case TAILOR_STOP_GC: return "gc";
	case TAILOR_STOP_STALL: return "stall";
	case TAILOR_STOP_GONE: return "gone";
	case TAILOR_STOP_KINDS: break;
	}
	return "unknown";
}

#endif /* TAILOR_STOP_NAMES_H */
