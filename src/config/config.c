/* SPDX-License-Identifier: Apache-2.0 */
#include "config/config.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/printable.h"
#include "base/units.h"
#include "config/file.h"
#include "config/lines.h"
#include "http1/http1.h"

#define FILE_BYTES_MAX (1 << 20)

struct validation {
	const struct config_lines *lines;
	tailor_config_complaint *complain;
	void *context;
	unsigned int complaints;
};

/* Texts hold what the file holds. */
static void say(struct validation *validation, unsigned int line, char *text)
{
	validation->complain(validation->context, line, tailor_printable_line(text));
	validation->complaints++;
}

__attribute__((format(printf, 3, 4))) static void complain(struct validation *validation, const char *path, const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	say(validation, config_lines_of(validation->lines, path), text);
}

static void take_duration(struct validation *validation, const char *path, const char *text, uint64_t min_ns, uint64_t *value)
{
	uint64_t ns;

	if (!text)
		return;
	if (tailor_parse_duration(text, &ns) != 0)
		complain(validation, path, "%s: \"%s\" is not a duration; write a number with a unit, like 250us, 5ms or 2s", path, text);
	else if (ns < min_ns)
		complain(validation, path, "%s: \"%s\" is too short; at least 1us", path, text);
	else
		*value = ns;
}

static void take_size(struct validation *validation, const char *path, const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	uint64_t bytes;

	if (!text)
		return;
	if (tailor_parse_size(text, &bytes) != 0)
		complain(validation, path, "%s: \"%s\" is not a size; write a number with a unit, like 64KiB or 256MiB", path, text);
	else if (bytes < min || bytes > max)
		complain(validation, path, "%s: \"%s\" is out of range; from %llu to %llu bytes", path, text,
		         (unsigned long long)min, (unsigned long long)max);
	else
		*value = bytes;
}

static void take_number(struct validation *validation, const char *path, const uint32_t *number, uint32_t min, uint32_t max, uint32_t *value)
{
	const char *text = config_lines_text(validation->lines, path);

	if (!number)
		return;
	/* libcyaml stops at the point of 2.5. */
	if (text && text[strspn(text, "0123456789")])
		complain(validation, path, "%s: \"%s\" is not a whole number from %u to %u", path, text, min, max);
	else if (*number < min || *number > max)
		complain(validation, path, "%s: %u is out of range; from %u to %u", path, *number, min, max);
	else
		*value = *number;
}

static unsigned int usable_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned int)CPU_COUNT(&set) : 1;
}

static void take_workers(struct validation *validation, const char *text, unsigned int *value)
{
	uint64_t number = usable_cpus();

	if (!text)
		return;
	if (strcmp(text, "auto") == 0)
		*value = number < TAILOR_CONFIG_WORKERS_MAX ? (unsigned int)number : TAILOR_CONFIG_WORKERS_MAX;
	else if (tailor_parse_number(text, 0, UINT32_MAX, &number) != 0)
		complain(validation, "workers", "workers: \"%s\" is not a whole number from 1 to %d, nor `auto`", text,
		         TAILOR_CONFIG_WORKERS_MAX);
	else if (number < 1 || number > TAILOR_CONFIG_WORKERS_MAX)
		complain(validation, "workers", "workers: %llu is out of range; from 1 to %d, or `auto`", (unsigned long long)number,
		         TAILOR_CONFIG_WORKERS_MAX);
	else
		*value = (unsigned int)number;
}

static void take_path(struct validation *validation, const char *path, const char *text, size_t max, char *value)
{
	if (!text)
		return;
	if (!text[0])
		complain(validation, path, "%s: is empty; name a path", path);
	else if (strlen(text) >= max)
		complain(validation, path, "%s: the path is %zu bytes long, the system allows %zu; choose a shorter one", path,
		         strlen(text), max - 1);
	else
		memcpy(value, text, strlen(text) + 1);
}

/* A group of this host by name, or its number. */
static void take_group(struct validation *validation, const char *path, const char *text, struct tailor_config *config)
{
	struct group entry, *found = NULL;
	char buffer[16384];
	unsigned long number;
	char *end;

	if (!text)
		return;
	if (getgrnam_r(text, &entry, buffer, sizeof(buffer), &found) == 0 && found) {
		config->agent_group = found->gr_gid;
	} else {
		errno = 0;
		number = strtoul(text, &end, 10);
		if (!isdigit((unsigned char)text[0]) || *end || errno || number >= (gid_t)-1) {
			complain(validation, path, "%s: this host has no group \"%s\"; name one that the servers' user is in, like elasticsearch",
			         path, text);
			return;
		}
		config->agent_group = (gid_t)number;
	}
	config->has_agent_group = true;
}

/* A user of this host by name; its group is its primary one. */
static void take_user(struct validation *validation, const char *text, struct tailor_config *config)
{
	struct passwd entry, *found = NULL;
	char buffer[16384];

	if (!text)
		return;
	if (getpwnam_r(text, &entry, buffer, sizeof(buffer), &found) != 0 || !found) {
		complain(validation, "user", "user: this host has no user \"%s\"; make one (useradd --system %s), or leave it out", text, text);
		return;
	}
	config->has_user = true;
	config->user = found->pw_uid;
	config->user_group = found->pw_gid;
}

static void take_nice(struct validation *validation, const char *text, int *value)
{
	uint64_t number;
	bool negative = text[0] == '-';

	if (tailor_parse_number(text + negative, 0, negative ? 20 : 19, &number) != 0)
		complain(validation, "priority.nice", "priority.nice: \"%s\" is not a whole number from -20 to 19", text);
	else
		*value = negative ? -(int)number : (int)number;
}

static void take_priority(struct validation *validation, const struct file_priority *priority, struct tailor_config *config)
{
	if (!priority)
		return;
	/* Spinning alone says nothing about the scheduler. */
	config->priority_given = priority->nice || priority->fifo;
	if (priority->nice && priority->fifo)
		complain(validation, "priority.fifo", "priority: has both `nice` and `fifo`; a thread has one of them");
	if (priority->nice)
		take_nice(validation, priority->nice, &config->nice);
	take_number(validation, "priority.fifo", priority->fifo, 1, 99, &config->fifo);
	take_duration(validation, "priority.busy_poll", priority->busy_poll, 0, &config->busy_poll_ns);
}

/* An address to listen on or connect to. */
static void take_address(struct validation *validation, const char *path, const char *text, bool allow_unix, bool allow_port_0,
                         struct tailor_address *value)
{
	int error = tailor_address_parse(text, value);

	if (error == -ENAMETOOLONG)
		complain(validation, path, "%s: the socket path is longer than the %zu bytes the system allows; choose a shorter one",
		         path, sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
	else if (error || (!allow_unix && value->storage.ss_family == AF_UNIX))
		complain(validation, path, "%s: \"%s\" is not an address; write a numeric one with a port, like 127.0.0.1:9200%s", path,
		         text, allow_unix ? ", or unix:PATH" : "");
	else if (!allow_port_0 && value->storage.ss_family != AF_UNIX && tailor_address_port(value) == 0)
		complain(validation, path, "%s: \"%s\" has port 0; name the server's port", path, text);
}

/* Whether a connection to `address` comes to who listens on `listener`. */
static bool reaches(const struct tailor_address *address, const struct tailor_address *listener)
{
	static const uint8_t any4[16] = {[10] = 0xff, [11] = 0xff}, any6[16];
	uint8_t to[16], own[16];

	if (!address->length || !listener->length || tailor_address_port(address) == 0 ||
	    tailor_address_port(address) != tailor_address_port(listener))
		return false;
	tailor_address_ip(address, to);
	tailor_address_ip(listener, own);
	return memcmp(to, own, sizeof(to)) == 0 ||
	       (tailor_address_is_local(address) && (memcmp(own, any4, sizeof(own)) == 0 || memcmp(own, any6, sizeof(own)) == 0));
}

static bool is_name(const char *text)
{
	if (!text[0] || strlen(text) >= TAILOR_CONFIG_NAME_BYTES)
		return false;
	for (; *text; text++) {
		if (!isalnum((unsigned char)*text) && !strchr("_.-", *text))
			return false;
	}
	return true;
}

static void take_servers(struct validation *validation, const struct file_config *file, struct tailor_config *config)
{
	char path[64];

	config->servers = file->servers_count;
	for (unsigned int i = 0; i < file->servers_count; i++) {
		struct tailor_config_server *server = &config->server[i];

		snprintf(path, sizeof(path), "servers[%u].name", i);
		if (is_name(file->servers[i].name))
			memcpy(server->name, file->servers[i].name, strlen(file->servers[i].name) + 1);
		else
			complain(validation, path, "%s: \"%s\" is no name; use 1 to %d letters, digits, '_', '.' or '-'", path,
			         file->servers[i].name, TAILOR_CONFIG_NAME_BYTES - 1);
		snprintf(path, sizeof(path), "servers[%u].address", i);
		take_address(validation, path, file->servers[i].address, false, false, &server->address);
		if (reaches(&server->address, &config->listen))
			complain(validation, path, "%s: %s is the proxy itself, which listens on %s; name the server's own port", path,
			         file->servers[i].address, file->listen);
		for (unsigned int j = 0; j < i; j++) {
			if (strcmp(file->servers[j].name, file->servers[i].name) == 0)
				complain(validation, path, "servers: there are two named \"%s\"; give each its own name", server->name);
			if (server->address.length == config->server[j].address.length &&
			    memcmp(&server->address.storage, &config->server[j].address.storage, server->address.length) == 0)
				complain(validation, path, "servers: \"%s\" and \"%s\" have the same address %s; a backup must be another server",
				         file->servers[j].name, file->servers[i].name, file->servers[i].address);
		}
	}
}

static void take_optional_sections(struct validation *validation, const struct file_config *file, struct tailor_config *config)
{
	if (file->failover) {
		if (file->failover->on)
			config->failover_on_gc = *file->failover->on & 1;
		if (file->failover->replay)
			config->replay_methods = *file->failover->replay;
	}
	if (file->timelines) {
		take_path(validation, "timelines.path", file->timelines->path, sizeof(config->timelines_path), config->timelines_path);
		take_size(validation, "timelines.max_size", file->timelines->max_size, 1 << 20, UINT64_C(1) << 40,
		          &config->timelines_bytes_max);
	}
	if (file->access_log) {
		config->has_access_log = true;
		take_path(validation, "access_log.path", file->access_log->path, sizeof(config->access_log_path), config->access_log_path);
		if (file->access_log->format)
			config->access_log_format = (enum tailor_config_log_format)*file->access_log->format;
	}
	if (file->admin) {
		config->has_admin = true;
		take_address(validation, "admin.listen", file->admin->listen, true, true, &config->admin);
		if (config->admin.length && !tailor_address_is_local(&config->admin))
			complain(validation, "admin.listen", "admin.listen: \"%s\" is reachable from outside; use unix:PATH or a loopback address",
			         file->admin->listen);
		if (reaches(&config->admin, &config->listen))
			complain(validation, "admin.listen", "admin.listen: \"%s\" is where the clients are served; choose another port or unix:PATH",
			         file->admin->listen);
	}
	if (file->agent) {
		config->has_agent = true;
		take_path(validation, "agent.socket", file->agent->socket, sizeof(((struct sockaddr_un *)0)->sun_path),
		          config->agent_socket);
		take_group(validation, "agent.group", file->agent->group, config);
	}
	if (file->timeouts) {
		take_duration(validation, "timeouts.connect", file->timeouts->connect, TAILOR_NS_PER_US, &config->connect_timeout_ns);
		take_duration(validation, "timeouts.response", file->timeouts->response, TAILOR_NS_PER_US, &config->response_timeout_ns);
		take_duration(validation, "timeouts.idle", file->timeouts->idle, TAILOR_NS_PER_US, &config->idle_timeout_ns);
		take_duration(validation, "timeouts.stop", file->timeouts->stop, TAILOR_NS_PER_US, &config->stop_timeout_ns);
	}
}

static void take_numbers(struct validation *validation, const struct file_config *file, struct tailor_config *config)
{
	uint32_t events_per_cpu = (uint32_t)config->events_per_cpu;
	uint64_t head_bytes = config->head_bytes_max;

	take_workers(validation, file->workers, &config->workers);
	if (file->slow) {
		take_duration(validation, "slow.threshold", file->slow->threshold, TAILOR_NS_PER_US, &config->slow_threshold_ns);
		take_number(validation, "slow.baseline_one_in", file->slow->baseline_one_in, 0, UINT32_MAX, &config->baseline_one_in);
	}
	if (file->limits) {
		take_number(validation, "limits.connections", file->limits->connections, 1, 1 << 20, &config->connections_max);
		take_size(validation, "limits.head_size", file->limits->head_size, 1024, 64 << 10, &head_bytes);
	}
	if (file->trace) {
		if (file->trace->kernel)
			config->trace = (enum tailor_config_trace)*file->trace->kernel;
		take_number(validation, "trace.events_per_cpu", file->trace->events_per_cpu, 1024, 1 << 22, &events_per_cpu);
		if (events_per_cpu & (events_per_cpu - 1))
			complain(validation, "trace.events_per_cpu", "trace.events_per_cpu: %u is not a power of two", events_per_cpu);
	}
	config->events_per_cpu = events_per_cpu;
	config->head_bytes_max = head_bytes;
}

static void set_defaults(struct tailor_config *config)
{
	memset(config, 0, sizeof(*config));
	config->workers = 1;
	config->nice = -10;
	config->slow_threshold_ns = 5 * TAILOR_NS_PER_MS;
	config->baseline_one_in = 1000;
	config->failover_on_gc = true;
	config->replay_methods = 1u << HTTP1_GET | 1u << HTTP1_HEAD;
	strcpy(config->timelines_path, "./timelines");
	config->timelines_bytes_max = UINT64_C(256) << 20;
	config->connect_timeout_ns = TAILOR_NS_PER_S;
	config->response_timeout_ns = 30 * TAILOR_NS_PER_S;
	config->idle_timeout_ns = 60 * TAILOR_NS_PER_S;
	config->stop_timeout_ns = 30 * TAILOR_NS_PER_S;
	config->connections_max = 1024;
	config->head_bytes_max = 16 << 10;
	config->trace = TAILOR_CONFIG_TRACE_AUTO;
	config->events_per_cpu = 65536;
}

/* What a value of the wrong kind should have been; NULL when libcyaml's own words must do. */
static const char *wanted_instead(const struct file_problem *problem, const char **ret_value)
{
	static const struct {
		const char *begins, *says;
	} table[] = {
		{"Unknown flag: ", NULL},
		{"Invalid ENUM value: ", NULL},
		{"Invalid UINT value: ", "is not a whole number from 0 to 4294967295"},
		{"Invalid uint64_t value: ", "is not a whole number from 0 to 4294967295"},
		{"Expecting FLAGS", "is not a list; write it in brackets, like [GET, HEAD], or [] for none"},
		{"Expecting SEQUENCE", "is not a list; write it in brackets or with a dash before each item"},
		{"Expecting MAPPING", "is not a section; write {KEY: VALUE} or indented lines; the README lists the keys"},
		{"Expecting ", "is not a single value"},
		{"Insufficient entries", "is empty; name one server, or two to have a backup"},
		{"Excessive entries", "has too many items; at most 2"},
	};

	*ret_value = NULL;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		size_t length = strlen(table[i].begins);

		if (strncmp(problem->text, table[i].begins, length) != 0)
			continue;
		if (table[i].begins[length - 2] == ':')
			*ret_value = problem->text + length;
		if (table[i].says)
			return table[i].says;
		return strcmp(problem->field, "failover.on") == 0       ? "is not one of: gc"
		       : strcmp(problem->field, "failover.replay") == 0 ? "is not one of: GET, HEAD, POST, PUT, DELETE, OPTIONS"
		       : strcmp(problem->field, "access_log.format") == 0 ? "is not one of: text, json"
		                                                        : "is not one of: auto, off, required";
	}
	return NULL;
}

/* Turns libcyaml's words into ours: the thing, then the remedy. */
static void complain_about_problem(struct validation *validation, const struct file_problem *problem)
{
	static const char unexpected[] = "Unexpected key: ";
	static const char missing[] = "Missing required mapping field: ";
	const char *wanted, *value;
	unsigned int line = problem->line;
	char text[512];

	if (strncmp(problem->text, unexpected, sizeof(unexpected) - 1) == 0) {
		const char *key = problem->text + sizeof(unexpected) - 1;
		unsigned int own = config_lines_of_key(validation->lines, key, line);

		if (own)
			line = own;
		snprintf(text, sizeof(text), "unknown key \"%s\"; the README lists the keys", key);
	} else if (strncmp(problem->text, missing, sizeof(missing) - 1) == 0) {
		const char *key = problem->text + sizeof(missing) - 1;

		/* libcyaml gives the place of the mapping's last key, also for the top. */
		if (strcmp(key, "listen") == 0 || strcmp(key, "servers") == 0)
			line = 1;
		snprintf(text, sizeof(text), "the key \"%s\" is missing and has no default", key);
	} else if ((wanted = wanted_instead(problem, &value)) != NULL && problem->field[0]) {
		/* Some come in libcyaml's quotes. */
		int length = value ? (int)strcspn(value + (*value == '\''), "'") : 0;

		if (value)
			snprintf(text, sizeof(text), "%s: \"%.*s\" %s", problem->field, length, value + (*value == '\''), wanted);
		else
			snprintf(text, sizeof(text), "%s: %s", problem->field, wanted);
	} else if (problem->field[0]) {
		snprintf(text, sizeof(text), "%s: %s", problem->field, problem->text);
	} else {
		snprintf(text, sizeof(text), "%s", problem->text);
	}
	say(validation, line ? line : 1, text);
}

static void validate(struct validation *validation, const char *text, size_t length, struct tailor_config *config)
{
	struct file_config *file = NULL;
	struct file_problem problem;

	if (file_config_load(text, length, &file, &problem) != 0) {
		complain_about_problem(validation, &problem);
		return;
	}
	take_address(validation, "listen", file->listen, false, true, &config->listen);
	take_user(validation, file->user, config);
	take_priority(validation, file->priority, config);
	take_servers(validation, file, config);
	take_numbers(validation, file, config);
	take_optional_sections(validation, file, config);
	file_config_free(file);
}

static int read_file(const char *path, char **ret_text, size_t *ret_length)
{
	cleanup_fclose FILE *file = fopen(path, "re");
	cleanup_free char *text = NULL;
	size_t length;

	if (!file)
		return -errno;
	text = malloc(FILE_BYTES_MAX);
	if (!text)
		return -ENOMEM;
	length = fread(text, 1, FILE_BYTES_MAX, file);
	if (ferror(file))
		return errno ? -errno : -EIO;
	if (length == FILE_BYTES_MAX)
		return -EFBIG;
	*ret_text = take_pointer(text);
	*ret_length = length;
	return 0;
}

int tailor_config_load(const char *path, struct tailor_config *ret_config, tailor_config_complaint *complaint, void *context)
{
	struct validation validation = {.complain = complaint, .context = context};
	struct config_lines *lines = NULL;
	cleanup_free char *text = NULL;
	const char *duplicate;
	char problem[256];
	unsigned int line = 0;
	size_t length = 0;
	int error = read_file(path, &text, &length);

	if (error) {
		if (error == -EFBIG)
			snprintf(problem, sizeof(problem), "is larger than 1 MiB; is it the right file?");
		else
			snprintf(problem, sizeof(problem), "cannot be read: %s", strerror(-error));
		complaint(context, 0, problem);
		return error;
	}
	set_defaults(ret_config);
	error = config_lines_open(text, length, &lines, &line, problem, sizeof(problem));
	if (error) {
		complaint(context, line, error == -ENOMEM ? "not enough memory" : tailor_printable_line(problem));
		return error;
	}
	validation.lines = lines;
	duplicate = config_lines_duplicate(lines, &line);
	if (config_lines_empty(lines))
		complaint(context, 1, "has no settings; the least is `listen: ADDRESS` and `servers: [{name: NAME, address: ADDRESS}]`");
	else if (duplicate) {
		snprintf(problem, sizeof(problem), "key \"%.100s\" stands twice; remove one", duplicate);
		say(&validation, line, problem);
	} else {
		validate(&validation, text, length, ret_config);
		config_lines_close(lines);
		return validation.complaints ? -EINVAL : 0;
	}
	config_lines_close(lines);
	return -EINVAL;
}
