/* SPDX-License-Identifier: Apache-2.0 */
/* The client's part: when its bytes came, and what it was slow to take. */
#ifndef TAILOR_CORRELATE_CLIENT_H
#define TAILOR_CORRELATE_CLIENT_H

#include "correlate/spans.h"
#include <tailor/window.h>

/*
 * When the request's first bytes came: record.request.begin_ns, or, where the worker was held up then and the kernel saw
 * them come, that earlier moment.
 */
uint64_t client_arrival(const struct tailor_window *window);

/*
 * From when on a wait of the server may as well be the client's doing, as far as the record tells: from the reply's begin on for a
 * response longer than the buffers. 0: never.
 */
uint64_t client_doubt_from(const struct tailor_window *window);

/* While the client's socket took no more, whatever waited to pass bytes on waited for the client; what the record leaves open about a long
 * response becomes unexplained. */
void client_cover(const struct tailor_window *window, struct span_list *spans);

#endif /* TAILOR_CORRELATE_CLIENT_H */
