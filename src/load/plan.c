/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/printable.h"
#include "load/load.h"

#define REQUEST_HEAD_BYTES 65536

int tailor_load_parse_url(const char *url, struct tailor_address *ret_address, char ret_host[TAILOR_LOAD_HOST_BYTES],
                          const char **ret_path, char error[TAILOR_LOAD_ERROR_BYTES])
{
	char address[TAILOR_LOAD_HOST_BYTES + 16];
	const char *authority, *port;
	size_t length;

	if (strncasecmp(url, "https://", 8) == 0) {
		snprintf(error, TAILOR_LOAD_ERROR_BYTES,
		         "https is not supported yet; give the http:// address of the server or proxy");
		return -EINVAL;
	}
	if (strncasecmp(url, "http://", 7) != 0) {
		snprintf(error, TAILOR_LOAD_ERROR_BYTES,
		         "\"%s\" is not a URL; write it like http://127.0.0.1:8080/path", url);
		return -EINVAL;
	}
	for (const char *at = url; *at; at++) {
		if (*at <= ' ' || *at >= 0x7f) {
			snprintf(error, TAILOR_LOAD_ERROR_BYTES,
			         "the URL holds a space or a byte that is not ASCII; escape it (a space is %%20)");
			return -EINVAL;
		}
	}
	authority = url + 7;
	length = strcspn(authority, "/?#");
	*ret_path = authority[length] == '/' || authority[length] == '?' ? authority + length : "/";
	if (length == 0 || length >= TAILOR_LOAD_HOST_BYTES) {
		snprintf(error, TAILOR_LOAD_ERROR_BYTES,
		         "\"%s\" has no address; write it like http://127.0.0.1:8080/path", url);
		return -EINVAL;
	}
	memcpy(ret_host, authority, length);
	ret_host[length] = '\0';
	port = strrchr(ret_host, ':');
	if (port && strchr(port, ']'))
		port = NULL; /* a colon of an IPv6 address */
	if (strncasecmp(ret_host, "localhost", 9) == 0 && (ret_host[9] == ':' || ret_host[9] == '\0'))
		snprintf(address, sizeof(address), "127.0.0.1%s", ret_host + 9);
	else
		snprintf(address, sizeof(address), "%s", ret_host);
	if (!port)
		strcat(address, ":80");
	if (strncmp(address, "unix:", 5) == 0 || tailor_address_parse(address, ret_address) != 0 ||
	    tailor_address_port(ret_address) == 0) {
		snprintf(error, TAILOR_LOAD_ERROR_BYTES,
		         "\"%s\" is no numeric address and port (names other than localhost are not looked up); "
		         "write it like http://127.0.0.1:8080/path",
		         ret_host);
		return -EINVAL;
	}
	return 0;
}

static bool is_named(const char *header, const char *name)
{
	size_t length = strlen(name);

	return strncasecmp(header, name, length) == 0 && header[length] == ':';
}

static bool has_header(const struct tailor_load_common *common, const char *name)
{
	for (size_t i = 0; i < common->header_count; i++)
		if (is_named(common->headers[i], name))
			return true;
	return false;
}

/* Writes the whole request to out. */
static void write_request(FILE *out, const struct tailor_load_common *common, const char *method, const char *path,
                          const char *body, size_t body_bytes)
{
	bool wants_length = strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 || strcmp(method, "PATCH") == 0;

	fprintf(out, "%s %s%s HTTP/1.1\r\n", method, path[0] == '?' ? "/" : "", path);
	if (!has_header(common, "Host"))
		fprintf(out, "Host: %s\r\n", common->host);
	if (!has_header(common, "User-Agent"))
		fputs("User-Agent: tailor-load/" TAILOR_VERSION "\r\n", out);
	if (common->close && !has_header(common, "Connection"))
		fputs("Connection: close\r\n", out);
	for (size_t i = 0; i < common->header_count; i++)
		fprintf(out, "%s\r\n", common->headers[i]);
	if (body_bytes > 0 || wants_length)
		fprintf(out, "Content-Length: %zu\r\n", body_bytes);
	fputs("\r\n", out);
	if (body_bytes > 0)
		fwrite(body, 1, body_bytes, out);
}

/* A request that the strict parser refuses is not worth a load. */
static int check_request(const struct tailor_load_request *request, size_t body_bytes, enum http1_method *ret_method)
{
	const struct http1_limits limits = {.head_bytes = REQUEST_HEAD_BYTES, .fields = HTTP1_FIELDS_MAX};
	struct http1_search search = {0};
	struct http1_head head;

	if (http1_parse_request(request->bytes, request->length, &limits, &search, &head) != 1)
		return -EINVAL;
	/* The body that the head promises is the one that follows. */
	if (head.head_bytes + body_bytes != request->length || head.framing == HTTP1_CHUNKED || head.expect_continue ||
	    head.content_length != body_bytes)
		return -EINVAL;
	*ret_method = head.method_known;
	return 0;
}

int tailor_load_plan_add(struct tailor_load_plan *plan, const struct tailor_load_common *common, const char *method,
                         const char *path, const char *body, char error[TAILOR_LOAD_ERROR_BYTES])
{
	size_t body_bytes = body ? strlen(body) : common->body_bytes;
	struct tailor_load_request *request;
	FILE *out;

	if (plan->count == plan->room) {
		size_t room = plan->room ? plan->room * 2 : 16;
		void *larger = reallocarray(plan->requests, room, sizeof(*plan->requests));

		if (!larger)
			return -ENOMEM;
		plan->requests = larger;
		plan->room = room;
	}
	request = &plan->requests[plan->count];
	memset(request, 0, sizeof(*request));
	out = open_memstream(&request->bytes, &request->length);
	if (!out)
		return -ENOMEM;
	write_request(out, common, method ? method : common->method, path, body ? body : common->body, body_bytes);
	if (fclose(out) != 0) {
		free(request->bytes);
		return -ENOMEM;
	}
	if (check_request(request, body_bytes, &request->method) < 0) {
		free(request->bytes);
		snprintf(error, TAILOR_LOAD_ERROR_BYTES,
		         "\"%s %.200s\" with the given headers is no valid request; escape spaces and controls in the "
		         "path (%%20), and leave Content-Length, Transfer-Encoding and Expect to the tool",
		         method ? method : common->method, path);
		return -EINVAL;
	}
	request->path = strdup(path);
	if (!request->path) {
		free(request->bytes);
		return -ENOMEM;
	}
	plan->count++;
	return 0;
}

/* "/path" or "METHOD /path [body]". The line is cut into its parts. */
static int add_line(struct tailor_load_plan *plan, const struct tailor_load_common *common, char *line,
                    char error[TAILOR_LOAD_ERROR_BYTES])
{
	char *path, *body;

	if (line[0] == '/')
		return tailor_load_plan_add(plan, common, NULL, line, NULL, error);
	path = strchr(line, ' ');
	if (!path || path[1] != '/') {
		snprintf(error, TAILOR_LOAD_ERROR_BYTES,
		         "a line is \"/path\" or \"METHOD /path [body]\", not \"%.100s\"", line);
		return -EINVAL;
	}
	*path++ = '\0';
	body = strchr(path, ' ');
	if (body)
		*body++ = '\0';
	return tailor_load_plan_add(plan, common, line, path, body, error);
}

int tailor_load_plan_read(struct tailor_load_plan *plan, const struct tailor_load_common *common, const char *file_name,
                          char error[TAILOR_LOAD_ERROR_BYTES])
{
	cleanup_fclose FILE *file = fopen(file_name, "re");
	cleanup_free char *line = NULL;
	char cause[TAILOR_LOAD_ERROR_BYTES] = "";
	size_t room = 0, before = plan->count;
	ssize_t length = 0;
	int ret = 0;

	if (!file) {
		ret = -errno;
		snprintf(error, TAILOR_LOAD_ERROR_BYTES, "cannot open %.200s: %s; give a readable file of paths",
		         file_name, strerror(-ret));
		return ret;
	}
	for (unsigned int number = 1; ret == 0; number++) {
		errno = 0;
		length = getline(&line, &room, file);
		if (length < 0)
			break;
		while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
			line[--length] = '\0';
		if (length == 0 || line[0] == '#')
			continue;
		ret = add_line(plan, common, line, cause);
		if (ret == -EINVAL) {
			snprintf(error, TAILOR_LOAD_ERROR_BYTES, "%.100s:%u: %.380s", file_name, number, cause);
			tailor_printable_line(error);
		}
	}
	if (ret == 0 && ferror(file)) {
		ret = errno ? -errno : -EIO;
		snprintf(error, TAILOR_LOAD_ERROR_BYTES, "cannot read %.200s: %s; give a readable file of paths",
		         file_name, strerror(-ret));
	} else if (ret == 0 && plan->count == before) {
		ret = -EINVAL;
		snprintf(error, TAILOR_LOAD_ERROR_BYTES,
		         "%.200s holds no paths; write one \"/path\" or \"METHOD /path [body]\" a line", file_name);
	}
	return ret;
}

void tailor_load_plan_free(struct tailor_load_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++) {
		free(plan->requests[i].bytes);
		free(plan->requests[i].path);
	}
	free(plan->requests);
	free(plan->recorded);
	memset(plan, 0, sizeof(*plan));
}
