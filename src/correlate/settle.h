/* SPDX-License-Identifier: Apache-2.0 */
/* Where a wait began that the walk has followed to who ended it: did that one work for the request, or only hold something? */
#ifndef TAILOR_CORRELATE_SETTLE_H
#define TAILOR_CORRELATE_SETTLE_H

#include "correlate/path.h"

/*
 * Ends the last of path->returns, at whose start the walk is: on with the thread that ended the wait if that worked for the request,
 * else with the one that waited.
 */
void path_settle(struct path *path);

#endif /* TAILOR_CORRELATE_SETTLE_H */
