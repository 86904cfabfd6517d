/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent hands over on its connection, checked in full before any of it is mapped or believed. Inside this room.
 */
#ifndef TAILOR_COLLECT_JVM_HANDOVER_H
#define TAILOR_COLLECT_JVM_HANDOVER_H

#include "collect/jvm.h"

enum tailor_jvm_heard {
	TAILOR_JVM_HEARD_NOTHING,
	TAILOR_JVM_HEARD_HELLO,
	TAILOR_JVM_HEARD_END,
	TAILOR_JVM_HEARD_NONSENSE,
};

/*
 * Reads one message from the connection without blocking. is_attached: its hello was accepted before, so that any other
 * word is nonsense. HEARD_HELLO: *ret_jvm is what was handed over, mapped, with one reference for the caller and
 * without its `pid`. HEARD_NONSENSE: *ret_reason says why (static text). Descriptors that the JVM does not keep are
 * closed.
 */
enum tailor_jvm_heard tailor_jvm_hear(int fd, int is_attached, struct tailor_jvm **ret_jvm, const char **ret_reason);

#endif /* TAILOR_COLLECT_JVM_HANDOVER_H */
