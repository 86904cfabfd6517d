/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration's text as a file, what was read of it, and the first complaint. */
#ifndef TAILOR_TESTS_CONFIG_TEXT_H
#define TAILOR_TESTS_CONFIG_TEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"

#define SERVERS "servers:\n  - {name: a, address: 127.0.0.1:9201}\n  - {name: b, address: 127.0.0.1:9202}\n"
#define GOOD "listen: 127.0.0.1:8080\n" SERVERS

struct complaints {
	unsigned int count;
	unsigned int line;
	char text[1024];
};

static void keep_first(void *context, unsigned int line, const char *text)
{
	struct complaints *complaints = context;

	if (complaints->count++ == 0) {
		complaints->line = line;
		snprintf(complaints->text, sizeof(complaints->text), "%s", text);
	}
	assert_null(strchr(text, '\n'));
}

static int load_with(const char *text, struct tailor_config *ret_config, tailor_config_complaint *complaint, void *context)
{
	char path[] = "/tmp/tailor-config-XXXXXX";
	int fd = mkstemp(path);
	int error;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	error = tailor_config_load(path, ret_config, complaint, context);
	unlink(path);
	return error;
}

static int load(const char *text, struct tailor_config *ret_config, struct complaints *ret_complaints)
{
	memset(ret_complaints, 0, sizeof(*ret_complaints));
	return load_with(text, ret_config, keep_first, ret_complaints);
}

#endif /* TAILOR_TESTS_CONFIG_TEXT_H */
