/* SPDX-License-Identifier: Apache-2.0 */
#include "load/text_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/printable.h"

/* More is no line, but a device or another kind of file. */
#define LINE_BYTES_MAX ((size_t)64 << 20)
#define ROOM_FIRST 64

struct line {
	char *text;
	size_t room;
};

void *load_array_grow(void *array, size_t count, size_t *room, size_t item_bytes)
{
	size_t more = *room ? *room * 2 : ROOM_FIRST;
	void *larger;

	if (count < *room)
		return array;
	larger = reallocarray(array, more, item_bytes);
	if (larger)
		*room = more;
	return larger;
}

/*
 * Returns 1, 0 at the end of the file, or a negative errno. Unlike getline() it stops where no text goes on: a device
 * that has no lines would take all memory, and what is behind a NUL would be passed over in silence.
 */
static int read_line(FILE *file, struct line *line, char error[TAILOR_LOAD_ERROR_BYTES])
{
	size_t length = 0;
	int byte;

	errno = 0;
	while ((byte = getc_unlocked(file)) != EOF && byte != '\n') {
		char *text = load_array_grow(line->text, length + 1, &line->room, 1);

		if (!text)
			return -ENOMEM;
		line->text = text;
		if (byte == '\0' || length == LINE_BYTES_MAX) {
			snprintf(error, TAILOR_LOAD_ERROR_BYTES, "%s; give a text file, a request a line",
			         byte == '\0' ? "it holds a NUL byte" : "the line is longer than 64 MiB");
			return -EINVAL;
		}
		line->text[length++] = (char)byte;
	}
	if (ferror(file))
		return errno ? -errno : -EIO;
	if (byte == EOF && length == 0)
		return 0;
	while (length > 0 && line->text[length - 1] == '\r')
		length--;
	if (line->text)
		line->text[length] = '\0';
	return 1;
}

static int tell_unreadable(const char *what, const char *file_name, const char *remedy, int ret,
                           char error[TAILOR_LOAD_ERROR_BYTES])
{
	snprintf(error, TAILOR_LOAD_ERROR_BYTES, "cannot %s %.200s: %s; %s", what, file_name, strerror(-ret), remedy);
	return ret;
}

int load_read_lines(const char *file_name, const char *remedy, load_take_line *take, void *context,
                    char error[TAILOR_LOAD_ERROR_BYTES])
{
	cleanup_fclose FILE *file = fopen(file_name, "re");
	char cause[TAILOR_LOAD_ERROR_BYTES] = "";
	struct line line = {0};
	int ret = 0;

	if (!file)
		return tell_unreadable("open", file_name, remedy, -errno, error);
	for (unsigned int number = 1; ret == 0; number++) {
		int got = read_line(file, &line, cause);

		if (got == 0)
			break;
		if (got < 0 && got != -EINVAL && got != -ENOMEM)
			tell_unreadable("read", file_name, remedy, got, error);
		if (got < 0)
			ret = got;
		else if (line.text && line.text[0] != '\0' && line.text[0] != '#')
			ret = take(context, line.text, cause);
		if (ret == -EINVAL) {
			snprintf(error, TAILOR_LOAD_ERROR_BYTES, "%.100s:%u: %.380s", file_name, number, cause);
			/* What is cited goes to a terminal, which must not take it for a command. */
			tailor_printable_line(error);
		}
	}
	free(line.text);
	return ret;
}
