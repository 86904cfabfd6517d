/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a stretch of a server's thread by what lay over it, and adds the spans. */
#ifndef TAILOR_CORRELATE_COVER_H
#define TAILOR_CORRELATE_COVER_H

#include "correlate/path.h"

/* Time in which the server's threads would have gone on if they could: what a stop of the JVM took of it is the stop's, the rest is as
 * `span` says (its times are ignored). Not for waits, which a stop does not make longer. */
void cover_off_cpu(struct span_list *spans, const struct pauses *pauses, uint32_t server_pid, uint64_t from_ns,
                   uint64_t to_ns, const struct tailor_span *span);

/* Stopped by the JVM from from_ns until the VM Thread woke the thread at to_ns. */
void cover_safepoint(struct span_list *spans, const struct pauses *pauses, uint32_t server_pid, uint64_t from_ns,
                     uint64_t to_ns, const struct tailor_span *span);

/* Time on a CPU: what lies over it is cut out, and where that CPU's events were lost nothing is claimed.
 */
void cover_on_cpu(const struct path *path, const struct thread_events *thread, uint64_t from_ns, uint64_t to_ns,
                  unsigned int cpu);

#endif /* TAILOR_CORRELATE_COVER_H */
