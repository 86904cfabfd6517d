/* SPDX-License-Identifier: Apache-2.0 */
/* Collections that the proxy wishes for, and the user of the JVM has allowed (option collect=young or collect=full). */
#ifndef TAILOR_JVMAGENT_WISH_H
#define TAILOR_JVMAGENT_WISH_H

#include <jvmti.h>
#include <stdint.h>

/* What may be brought about: TAILOR_JVM_CAN_COLLECT_... Before the first wish_grant(). */
void wish_allow(uint64_t can);

/* Whether there is a wish that has not been dealt with. Any thread. */
int wish_is_open(void);

/*
 * Deals with the wish: brings the collection about, waits for its end, and says that it is granted, as it does of one
 * that is too late or not allowed. A young collection comes of eden being filled with garbage; that is given up at the
 * wish's time, when the wish is taken back, when eden does not fill, when the old generation is nearly full (a failed allocation may end a JVM that
 * is told so), and when *stopping is set. After heap_open(), from the thread that calls heap_read(). Leaves no
 * exception pending.
 */
void wish_grant(jvmtiEnv *jvmti, JNIEnv *jni, const int *stopping);

/* Says that the wish is dealt with; where there is no thread to do so. Any thread. */
void wish_refuse(void);

#endif /* TAILOR_JVMAGENT_WISH_H */
