/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/forwarded.h"

#include <arpa/inet.h>
#include <strings.h>

/* Longer than any name of a host: not repeated in other fields. */
#define HOST_BYTES_MAX 255

static bool is_named(const struct http1_field *field, const char *name)
{
	size_t length = strlen(name);

	return field->name.length == length && strncasecmp(field->name.data, name, length) == 0;
}

static bool is_there(const struct http1_head *head, const char *name)
{
	for (size_t i = 0; i < head->field_count; i++) {
		if (is_named(&head->field[i], name) && !http1_is_hop_by_hop(head, &head->field[i]))
			return true;
	}
	return false;
}

/* Whether all quoted strings in it end. */
static bool quotes_end(struct http1_text value)
{
	bool quoted = false;

	for (size_t i = 0; i < value.length; i++) {
		if (value.data[i] == '"')
			quoted = !quoted;
		else if (quoted && value.data[i] == '\\')
			i++;
	}
	return !quoted;
}

/* Whether all comments in it end (RFC 9110, 5.6.5): they may hold others. */
static bool comments_end(struct http1_text value)
{
	size_t depth = 0;

	for (size_t i = 0; i < value.length; i++) {
		if (value.data[i] == '(')
			depth++;
		else if (depth > 0 && value.data[i] == ')')
			depth--;
		else if (depth > 0 && value.data[i] == '\\')
			i++;
	}
	return depth == 0;
}

/* What follows an open quote or comment is a part of it, so that others could make our own words theirs. */
static bool is_fit(const struct http1_field *field)
{
	if (is_named(field, "Via"))
		return comments_end(field->value);
	return !is_named(field, "Forwarded") || quotes_end(field->value);
}

/* Begins a list field with what the head already has of it. Returns whether that was anything. */
static bool put_list(struct output *output, const struct http1_head *head, const char *name)
{
	bool any = false;

	put(output, name, strlen(name));
	PUT(output, ": ");
	for (size_t i = 0; i < head->field_count; i++) {
		const struct http1_field *field = &head->field[i];

		if (!is_named(field, name) || http1_is_hop_by_hop(head, field) || field->value.length == 0 || !is_fit(field))
			continue;
		if (any)
			PUT(output, ", ");
		put(output, field->value.data, field->value.length);
		any = true;
	}
	return any;
}

static void put_list_and_comma(struct output *output, const struct http1_head *head, const char *name)
{
	if (put_list(output, head, name))
		PUT(output, ", ");
}

static bool has_via(const char *via)
{
	return via && via[0];
}

bool forwarded_replaces_via(const char *via, const struct http1_field *field)
{
	return has_via(via) && is_named(field, "Via");
}

void forwarded_put_via(struct output *output, const char *via, const struct http1_head *head)
{
	if (!has_via(via))
		return;
	put_list_and_comma(output, head, "Via");
	put(output, head->minor ? "1.1 " : "1.0 ", 4);
	put(output, via, strlen(via));
	PUT(output, "\r\n");
}

/* The client's IP as people write it; "" where it has none. */
static size_t write_address(const uint8_t address[16], char text[INET6_ADDRSTRLEN], bool *ret_ipv6)
{
	static const uint8_t none[16], mapped[12] = {[10] = 0xff, [11] = 0xff};

	*ret_ipv6 = memcmp(address, mapped, sizeof(mapped)) != 0;
	text[0] = '\0';
	if (memcmp(address, none, sizeof(none)) != 0)
		inet_ntop(*ret_ipv6 ? AF_INET6 : AF_INET, *ret_ipv6 ? address : address + 12, text, INET6_ADDRSTRLEN);
	return strlen(text);
}

static void put_x_forwarded(struct output *output, const struct forwarded_rules *rules, const struct http1_head *head,
                            struct http1_text host)
{
	char text[INET6_ADDRSTRLEN];
	bool ipv6;
	size_t length = write_address(rules->address, text, &ipv6);

	if (length) {
		put_list_and_comma(output, head, "X-Forwarded-For");
		put(output, text, length);
		PUT(output, "\r\n");
	}
	/* A proxy in front knows better what the client has used. */
	if (!is_there(head, "X-Forwarded-Proto"))
		PUT(output, "X-Forwarded-Proto: http\r\n");
	if (host.length > 0 && !is_there(head, "X-Forwarded-Host")) {
		PUT(output, "X-Forwarded-Host: ");
		put(output, host.data, host.length);
		PUT(output, "\r\n");
	}
}

/* A token as it is, anything else in quotes: a port's colon is no part of a token. */
static void put_value(struct output *output, struct http1_text value)
{
	bool token = true;

	for (size_t i = 0; i < value.length; i++) {
		char c = value.data[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && !strchr("-._~!$&'*+", c))
			token = false;
	}
	if (token) {
		put(output, value.data, value.length);
		return;
	}
	PUT(output, "\"");
	for (size_t i = 0; i < value.length; i++) {
		if (value.data[i] == '"' || value.data[i] == '\\')
			PUT(output, "\\");
		put(output, value.data + i, 1);
	}
	PUT(output, "\"");
}

/* RFC 7239, 4 and 6: an IPv6 address is in brackets and quotes, and one that cannot be told is "unknown". */
static void put_forwarded(struct output *output, const struct forwarded_rules *rules, const struct http1_head *head,
                          struct http1_text host)
{
	char text[INET6_ADDRSTRLEN];
	bool ipv6;
	size_t length = write_address(rules->address, text, &ipv6);

	put_list_and_comma(output, head, "Forwarded");
	PUT(output, "for=");
	if (length == 0)
		PUT(output, "unknown");
	else if (ipv6)
		PUT(output, "\"[");
	put(output, text, length);
	if (length > 0 && ipv6)
		PUT(output, "]\"");
	if (host.length > 0) {
		PUT(output, ";host=");
		put_value(output, host);
	}
	PUT(output, ";proto=http\r\n");
}

/* The number in an OPTIONS or TRACE request's Max-Forwards, which others may ignore. Returns false where there is none. */
static bool max_forwards(const struct http1_head *head, uint64_t *ret_number)
{
	const struct http1_field *found = NULL;
	uint64_t number = 0;

	if (head->method_known != HTTP1_OPTIONS && head->method_known != HTTP1_TRACE)
		return false;
	for (size_t i = 0; i < head->field_count; i++) {
		if (!is_named(&head->field[i], "Max-Forwards") || http1_is_hop_by_hop(head, &head->field[i]))
			continue;
		if (found)
			return false;
		found = &head->field[i];
	}
	if (!found || found->value.length == 0)
		return false;
	for (size_t i = 0; i < found->value.length; i++) {
		char digit = found->value.data[i];

		if (digit < '0' || digit > '9')
			return false;
		/* A lower number than it says is allowed. */
		if (number < UINT32_MAX)
			number = number * 10 + (uint64_t)(digit - '0');
	}
	*ret_number = number;
	return true;
}

bool forwarded_may(const struct http1_head *head)
{
	uint64_t number;

	return !max_forwards(head, &number) || number > 0;
}

bool forwarded_replaces(const struct forwarded_rules *rules, const struct http1_head *head, const struct http1_field *field)
{
	static const uint8_t none[16];
	uint64_t number;

	if (forwarded_replaces_via(rules->via, field))
		return true;
	if (rules->forwarded && is_named(field, "Forwarded"))
		return true;
	if (rules->x_forwarded && is_named(field, "X-Forwarded-For"))
		return memcmp(rules->address, none, sizeof(none)) != 0;
	return is_named(field, "Max-Forwards") && max_forwards(head, &number);
}

void forwarded_put_request(struct output *output, const struct forwarded_rules *rules, const struct http1_head *head,
                           struct http1_text host)
{
	uint64_t number;

	if (host.length > HOST_BYTES_MAX)
		host.length = 0;
	forwarded_put_via(output, rules->via, head);
	if (rules->x_forwarded)
		put_x_forwarded(output, rules, head, host);
	if (rules->forwarded)
		put_forwarded(output, rules, head, host);
	if (rules->upgrade) {
		PUT(output, "Connection: upgrade\r\nUpgrade: ");
		put(output, rules->upgrade, strlen(rules->upgrade));
		PUT(output, "\r\n");
	}
	if (max_forwards(head, &number) && number > 0) {
		PUT(output, "Max-Forwards: ");
		put_number(output, number - 1);
		PUT(output, "\r\n");
	}
}
