/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/route.h"

#include <string.h>
#include <strings.h>

/* A trailing `**` takes all that is left; `*` goes back to where it was and takes one character more, never a '/'. */
static bool matches(const char *pattern, const char *at, const char *end)
{
	const char *star = NULL, *starred = NULL;

	while (*pattern || at < end) {
		if (pattern[0] == '*' && pattern[1] == '*' && pattern[2] == '\0')
			return true;
		if (*pattern == '*') {
			star = ++pattern;
			starred = at;
		} else if (at < end && *pattern == *at) {
			pattern++;
			at++;
		} else if (star && starred < end && *starred != '/') {
			pattern = star;
			at = ++starred;
		} else {
			return false;
		}
	}
	return true;
}

static bool is_dots(const char *segment, size_t length)
{
	return length > 0 && length <= 2 && memcmp(segment, "..", length) == 0;
}

static bool is_escaped_separator(const char *at, const char *end)
{
	return end - at >= 3 && *at == '%' &&
	       (strncasecmp(at + 1, "2e", 2) == 0 || strncasecmp(at + 1, "2f", 2) == 0 || strncasecmp(at + 1, "5c", 2) == 0);
}

static bool is_ambiguous(const char *path, const char *end)
{
	const char *segment = path;

	for (const char *at = path; at < end; at++) {
		if (*at == '\\' || is_escaped_separator(at, end))
			return true;
		if (*at != '/')
			continue;
		if (is_dots(segment, (size_t)(at - segment)))
			return true;
		segment = at + 1;
	}
	return is_dots(segment, (size_t)(end - segment));
}

bool route_allows(const struct tailor_proxy_route *routes, unsigned int count, enum http1_method method, struct http1_text path)
{
	const char *end = memchr(path.data, '?', path.length);

	if (!end)
		end = path.data + path.length;
	for (unsigned int i = 0; i < count; i++) {
		if (!(routes[i].methods & (1u << method)))
			continue;
		if (!routes[i].path[0] || (!is_ambiguous(path.data, end) && matches(routes[i].path, path.data, end)))
			return true;
	}
	return false;
}
