/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/conformance/reason.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

struct line {
	const char *at;
	size_t length; /* without its end */
	bool whole;    /* its end was there, right or wrong */
};

/* What the field lines say that decides about the body or the server. */
struct seen {
	unsigned int hosts, lengths, codings;
	bool bad_length;
	bool too_many;
};

static bool is_token(char byte)
{
	return isalnum((unsigned char)byte) || (byte && strchr("!#$%&'*+-.^_`|~", byte));
}

static bool take_line(const char **at, const char *end, struct line *line)
{
	const char *feed = memchr(*at, '\n', (size_t)(end - *at));

	line->at = *at;
	line->whole = feed != NULL;
	line->length = (size_t)((feed ? feed : end) - *at);
	*at = feed ? feed + 1 : end;
	return line->whole;
}

/* The line's end, taken off. NULL: it is right. */
static const char *end_reason(struct line *line)
{
	if (line->length == 0 || line->at[line->length - 1] != '\r')
		return "bare LF";
	line->length--;
	return memchr(line->at, '\r', line->length) ? "bare CR" : NULL;
}

static const char *name_reason(const struct line *line, size_t name)
{
	if (name == line->length)
		return "a line without a colon";
	if (line->at[name] == ':')
		return name == 0 ? "an empty name" : NULL;
	if (line->at[name] == ' ' || line->at[name] == '\t')
		return name == 0 ? "a folded line" : "white space in a name or before its colon";
	return "a character in a name";
}

static const char *field_reason(const struct line *line, struct seen *seen)
{
	size_t name = 0, value;
	const char *reason;

	while (name < line->length && is_token(line->at[name]))
		name++;
	reason = name_reason(line, name);
	if (reason)
		return reason;
	for (size_t i = name + 1; i < line->length; i++)
		if (((unsigned char)line->at[i] < 0x20 && line->at[i] != '\t') || line->at[i] == 0x7f)
			return "a control character in a value";
	value = name + 1;
	while (value < line->length && (line->at[value] == ' ' || line->at[value] == '\t'))
		value++;
	if (name == 4 && strncasecmp(line->at, "host", 4) == 0)
		seen->hosts++;
	if (name == 17 && strncasecmp(line->at, "transfer-encoding", 17) == 0)
		seen->codings++;
	if (name == 14 && strncasecmp(line->at, "content-length", 14) == 0) {
		size_t digits = value;

		seen->lengths++;
		while (digits < line->length && isdigit((unsigned char)line->at[digits]))
			digits++;
		/* More digits may be too large a number. */
		seen->bad_length |= digits == value || digits - value > 18;
		while (digits < line->length && (line->at[digits] == ' ' || line->at[digits] == '\t'))
			digits++;
		seen->bad_length |= digits < line->length;
	}
	return NULL;
}

static const char *request_line_reason(const struct line *line)
{
	size_t at = 0, begin;

	while (at < line->length && is_token(line->at[at]))
		at++;
	if (at == 0 || at == line->length || line->at[at] != ' ')
		return "the method";
	begin = ++at;
	while (at < line->length && line->at[at] > ' ' && line->at[at] < 0x7f && line->at[at] != '#')
		at++;
	if (at < line->length && line->at[at] != ' ')
		return "a character in the target";
	if (at == begin || at == line->length)
		return "no target or no version";
	if (line->length - at != 9 || memcmp(line->at + at, " HTTP/", 6) != 0 || !isdigit((unsigned char)line->at[at + 6]) ||
	    line->at[at + 7] != '.' || !isdigit((unsigned char)line->at[at + 8]))
		return "the version's form";
	return line->at[at + 6] == '1' ? NULL : "another major version";
}

static const char *status_line_reason(const struct line *line)
{
	if (line->length < 8 || memcmp(line->at, "HTTP/1.", 7) != 0 || !isdigit((unsigned char)line->at[7]))
		return "the version's form";
	for (size_t i = 0; i < line->length; i++)
		if ((unsigned char)line->at[i] < 0x20 && line->at[i] != '\t')
			return "a control character in the reason";
	if (line->length < 12 || line->at[8] != ' ')
		return "the status";
	for (size_t i = 9; i < 12; i++)
		if (!isdigit((unsigned char)line->at[i]))
			return "the status";
	if (line->length > 12 && line->at[12] != ' ')
		return "the status";
	if (line->at[9] < '1' || line->at[9] > '5')
		return "a status below 100 or above 599";
	return memchr(line->at, 0x7f, line->length) ? "a control character in the reason" : NULL;
}

/* Nothing is wrong with any line alone. */
static const char *message_reason(const struct walk *walk, const struct line *first, const struct seen *seen, int status)
{
	const char *target = memchr(first->at, ' ', first->length);

	if (status == 417)
		return "Expect";
	if (status == 411)
		return "a POST of HTTP/1.0 without a length";
	if (!walk->responses && strncmp(first->at, "CONNECT ", 8) == 0)
		return "CONNECT";
	if (seen->codings && seen->lengths)
		return "Content-Length beside Transfer-Encoding";
	if (seen->bad_length)
		return "Content-Length's value";
	if (seen->lengths > 1)
		return "Content-Length twice";
	if (!walk->responses && seen->hosts != 1)
		return seen->hosts ? "Host twice" : "no Host";
	if (seen->codings)
		return "Transfer-Encoding's value, or in HTTP/1.0";
	if (walk->responses)
		return memmem(first->at, first->length, " 101", 4) ? "101" : "an interim response with a body";
	return target && target[1] == '/' ? "Host's value" : "the target's form, or Host's value";
}

static const char *body_reason(const struct walk *walk, const char *data)
{
	char byte = data[walk->consumed];

	if (walk->chunked.trailer_started)
		return byte == '\n' ? "bare LF in the trailers" : byte == ':' ? "a forbidden or nameless trailer" : "the trailers";
	if (byte == '\n')
		return "bare LF in chunk framing";
	return (byte >= '0' && byte <= '9') || strchr("abcdefABCDEF", byte) ? "a chunk's size or end" : "chunk framing";
}

const char *reason_of(const struct walk *walk, const char *data, size_t length)
{
	const char *at = data + walk->consumed, *end = data + length, *reason;
	const char *last = strrchr(walk->verdict, ' ');
	int status = 0;
	struct line first, line;
	struct seen seen = {0};
	size_t fields = 0;

	for (const char *digit = last ? last + 1 : walk->verdict; isdigit((unsigned char)*digit); digit++)
		status = status * 10 + *digit - '0';
	if (walk->count > 0 && !walk->message[walk->count - 1].complete)
		return body_reason(walk, data);
	while (!walk->responses && end - at >= 2 && at[0] == '\r' && at[1] == '\n')
		at += 2;
	if (status == 414 || !take_line(&at, end, &first))
		return "a head that is too long";
	reason = end_reason(&first);
	if (!reason)
		reason = walk->responses ? status_line_reason(&first) : request_line_reason(&first);
	while (!reason && take_line(&at, end, &line)) {
		reason = end_reason(&line);
		if (!reason && line.length == 0)
			return message_reason(walk, &first, &seen, status);
		if (!reason)
			reason = field_reason(&line, &seen);
		if (!reason && ++fields > HTTP1_FIELDS_MAX)
			reason = "too many fields";
	}
	return reason ? reason : "a head that is too long";
}
