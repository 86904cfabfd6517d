/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/demo.h"

void demo_say(const struct demo *demo, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "demo: [%3lu s] ", (unsigned long)((tailor_clock_ns() - demo->started_ns) / TAILOR_NS_PER_S));
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

int demo_fail(const char *format, ...)
{
	va_list arguments;

	fputs("tailor demo: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return -EIO;
}

int demo_fail_ended(struct demo_process *process)
{
	char ending[64], line[512];

	/* Only a process that ended by itself had a last word. */
	line[0] = '\0';
	if (WIFEXITED(process->status))
		demo_log_last_line(process->log, line, sizeof(line));
	return demo_fail("%s ended early (%s)%s%s; see %s", process->name,
	                 demo_process_ending(process, ending, sizeof(ending)), line[0] ? ": " : "", line, process->log);
}

int demo_path(char path[PATH_MAX], const char *directory, const char *file)
{
	return snprintf(path, PATH_MAX, "%s/%s", directory, file) < PATH_MAX ? 0 : -ENAMETOOLONG;
}
