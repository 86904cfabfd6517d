/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests may be sent to a second server, by method and path. Pure. */
#ifndef TAILOR_PROXY_ROUTE_H
#define TAILOR_PROXY_ROUTE_H

#include <stdbool.h>

#include "http1/http1.h"
#include "proxy/proxy.h"

/*
 * Whether one of the routes allows it. `path` is the target as it is sent on (http1_head.path); its query says nothing. A route that
 * names a path never matches one that a server may take for another path than it looks: with "." or ".." as a segment, a backslash, or
 * an escaped '.', '/' or '\'.
 */
bool route_allows(const struct tailor_proxy_route *routes, unsigned int count, enum http1_method method, struct http1_text path);

#endif /* TAILOR_PROXY_ROUTE_H */
