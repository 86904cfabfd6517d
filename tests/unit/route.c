/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/route.h"

static bool allows(const char *pattern, const char *path)
{
	struct tailor_proxy_route route = {.methods = 1u << HTTP1_POST};
	struct http1_text text = {NULL, strlen(path)};
	char *exact = malloc(strlen(path) + 1);
	bool allowed;

	/* Without a byte behind it, so that a sanitizer sees who reads on. */
	memcpy(exact, path, strlen(path));
	exact = realloc(exact, strlen(path) + !*path);
	text.data = exact;
	strcpy(route.path, pattern);
	allowed = route_allows(&route, 1, HTTP1_POST, text);
	free(exact);
	return allowed;
}

static void a_path_matches_its_patterns_only(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool allowed;
	} cases[] = {
		{"", "/anything/at/all", true},
		{"", "*", true},
		{"/_search", "/_search", true},
		{"/_search", "/_search?q=a/b", true},
		{"/_search", "/_search/", false},
		{"/_search", "/_searches", false},
		{"/_search", "/_searc", false},
		{"/_search", "", false},
		{"/*/_search", "/books/_search", true},
		{"/*/_search", "/books,films/_search?routing=/x", true},
		{"/*/_search", "/_search", false},
		{"/*/_search", "/a/b/_search", false},
		{"/*/_search", "/books/_search/template", false},
		{"/*/_search", "/books/_doc/_search", false},
		{"/*/_search", "/books/_doc?/_search", false},
		{"/*/_search", "//_search", true},
		{"/*/*/_search", "/a/b/_search", true},
		{"/log-*/_search", "/log-2026/_search", true},
		{"/log-*/_search", "/log/_search", false},
		{"/*-log/_search", "/a-log-log/_search", true},
		{"/*a*b", "/xaxxaxb", true},
		{"/*a*b", "/xax/xaxb", false},
		{"/solr/**", "/solr/core/select", true},
		{"/solr/**", "/solr/", true},
		{"/solr/**", "/solr", false},
		{"/solr/**", "/solrs/x", false},
		{"/*/x**", "/a/x/y/z", true},
		{"/*/x**", "/a/b/x", false},
		{"/a", "http://host/a", false}, /* the target behind its authority is what is matched */
		/* What a server may take for another path. */
		{"/solr/**", "/solr/../update", false},
		{"/solr/**", "/solr/..", false},
		{"/solr/**", "/solr/./x", false},
		{"/solr/**", "/solr/%2e%2e/update", false},
		{"/solr/**", "/solr/.%2E/update", false},
		{"/solr/**", "/solr/a\\..\\update", false},
		{"/*/_search", "/a%2F_doc/_search", false},
		{"/*/_search", "/a%5c_doc/_search", false},
		{"/solr/**", "/solr/...", true},
		{"/solr/**", "/solr/.x/y.", true},
		{"/solr/**", "/solr/x?../..%2f\\", true},
		{"/solr/**", "/solr/100%", true},
		{"/solr/**", "/solr/x%2", true},
		{"/s/%20*", "/s/%20x", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (allows(cases[i].pattern, cases[i].path) != cases[i].allowed)
			fail_msg("%s %s %s", cases[i].pattern, cases[i].allowed ? "does not match" : "matches", cases[i].path);
	}
}

static void a_route_is_for_its_methods(void **state)
{
	const struct tailor_proxy_route routes[] = {
		{.methods = 1u << HTTP1_GET | 1u << HTTP1_HEAD},
		{.methods = 1u << HTTP1_POST | 1u << HTTP1_PUT, .path = "/*/_search"},
	};
	struct http1_text search = {"/a/_search", 10}, other = {"/a/_doc", 7};

	(void)state;
	assert_true(route_allows(routes, 2, HTTP1_GET, search));
	assert_true(route_allows(routes, 2, HTTP1_HEAD, other));
	assert_true(route_allows(routes, 2, HTTP1_POST, search));
	assert_true(route_allows(routes, 2, HTTP1_PUT, search));
	assert_false(route_allows(routes, 2, HTTP1_POST, other));
	assert_false(route_allows(routes, 2, HTTP1_DELETE, search));
	assert_false(route_allows(routes, 2, HTTP1_METHOD_OTHER, search));
	assert_false(route_allows(routes, 1, HTTP1_POST, search));
	assert_false(route_allows(routes, 0, HTTP1_GET, search));
}

/* A pattern made of a path matches it, whatever the star stands for: against one tried by hand for all ways to split. */
static bool slow_matches(const char *pattern, const char *path)
{
	if (strcmp(pattern, "**") == 0)
		return true;
	if (*pattern == '*')
		return slow_matches(pattern + 1, path) || (*path && *path != '/' && slow_matches(pattern, path + 1));
	return *pattern == *path && (!*path || slow_matches(pattern + 1, path + 1));
}

static void it_agrees_with_the_obvious_way(void **state)
{
	static const char letters[] = "ab/*";

	(void)state;
	srand(7);
	for (int i = 0; i < 200000; i++) {
		char pattern[8] = "/", path[10] = "/";
		int patterns = 1 + rand() % 6, paths = 1 + rand() % 8;

		for (int j = 1; j < patterns; j++)
			pattern[j] = letters[rand() % 4];
		for (int j = 1; j < paths; j++)
			path[j] = letters[rand() % 3];
		if (allows(pattern, path) != slow_matches(pattern, path))
			fail_msg("%s %s", pattern, path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_matches_its_patterns_only),
		cmocka_unit_test(a_route_is_for_its_methods),
		cmocka_unit_test(it_agrees_with_the_obvious_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
