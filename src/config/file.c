/* SPDX-License-Identifier: Apache-2.0 */
#include "config/file.h"

#include <cyaml/cyaml.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"

/* Text longer than any value may sensibly be; values are judged by their own rules afterwards. */
#define TEXT_MAX 5000
#define OPTIONAL (CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL)

#define TEXT(name, structure) CYAML_FIELD_STRING_PTR(#name, OPTIONAL, structure, name, 0, TEXT_MAX)
#define REQUIRED_TEXT(name, structure) CYAML_FIELD_STRING_PTR(#name, CYAML_FLAG_POINTER, structure, name, 0, TEXT_MAX)
#define SECTION(name) CYAML_FIELD_MAPPING_PTR(#name, OPTIONAL, struct file_config, name, name##_fields)

static const cyaml_strval_t failover_causes[] = {
	{"gc", 1 << TAILOR_STOP_GC},
	{"safepoint", 1 << TAILOR_STOP_SAFEPOINT},
	/* A process that was stopped by a signal is one that stands still. */
	{"stall", 1 << TAILOR_STOP_STALL | 1 << TAILOR_STOP_SIGNAL},
	{"crash", 1 << TAILOR_STOP_GONE},
};

static const cyaml_strval_t modes[] = {
	{"active-backup", TAILOR_CONFIG_ACTIVE_BACKUP},
	{"balanced", TAILOR_CONFIG_BALANCED},
};

static const cyaml_strval_t replay_whens[] = {
	{"predicted", TAILOR_CONFIG_REPLAY_PREDICTED},
	{"always", TAILOR_CONFIG_REPLAY_ALWAYS},
	{"never", TAILOR_CONFIG_REPLAY_NEVER},
};

static const cyaml_strval_t predictions[] = {
	{"off", 0},
	{"on", 1},
};

static const cyaml_strval_t collects[] = {
	{"off", TAILOR_CONFIG_COLLECT_OFF},
	{"young", TAILOR_CONFIG_COLLECT_YOUNG},
	{"full", TAILOR_CONFIG_COLLECT_FULL},
};

static const cyaml_strval_t trace_modes[] = {
	{"auto", TAILOR_CONFIG_TRACE_AUTO},
	{"off", TAILOR_CONFIG_TRACE_OFF},
	{"required", TAILOR_CONFIG_TRACE_REQUIRED},
};

static const cyaml_strval_t log_formats[] = {
	{"text", TAILOR_CONFIG_LOG_TEXT},
	{"json", TAILOR_CONFIG_LOG_JSON},
};

static const cyaml_schema_field_t server_fields[] = {
	REQUIRED_TEXT(name, struct file_server),
	REQUIRED_TEXT(address, struct file_server),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t server_value = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct file_server, server_fields),
};

static const cyaml_schema_field_t slow_fields[] = {
	TEXT(threshold, struct file_slow),
	TEXT(baseline_one_in, struct file_slow),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t text_value = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, TEXT_MAX),
};

static const cyaml_schema_field_t budget_fields[] = {
	TEXT(fraction, struct file_budget),
	TEXT(floor, struct file_budget),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t failover_fields[] = {
	CYAML_FIELD_FLAGS_PTR("on", OPTIONAL | CYAML_FLAG_STRICT, struct file_failover, on, failover_causes,
                              CYAML_ARRAY_LEN(failover_causes)),
	CYAML_FIELD_SEQUENCE("replay", OPTIONAL, struct file_failover, replay, &text_value, 0, FILE_REPLAYS_MAX),
	CYAML_FIELD_ENUM_PTR("when", OPTIONAL | CYAML_FLAG_STRICT, struct file_failover, when, replay_whens,
                             CYAML_ARRAY_LEN(replay_whens)),
	CYAML_FIELD_MAPPING_PTR("budget", OPTIONAL, struct file_failover, budget, budget_fields),
	TEXT(switch_after, struct file_failover),
	CYAML_FIELD_ENUM_PTR("predict", OPTIONAL | CYAML_FLAG_STRICT, struct file_failover, predict, predictions,
                             CYAML_ARRAY_LEN(predictions)),
	CYAML_FIELD_ENUM_PTR("collect", OPTIONAL | CYAML_FLAG_STRICT, struct file_failover, collect, collects,
                             CYAML_ARRAY_LEN(collects)),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t timelines_fields[] = {
	TEXT(path, struct file_timelines),
	TEXT(max_size, struct file_timelines),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t priority_fields[] = {
	TEXT(nice, struct file_priority), /* a number with a sign */
	TEXT(fifo, struct file_priority),
	TEXT(busy_poll, struct file_priority),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t access_log_fields[] = {
	REQUIRED_TEXT(path, struct file_access_log),
	CYAML_FIELD_ENUM_PTR("format", OPTIONAL | CYAML_FLAG_STRICT, struct file_access_log, format, log_formats,
                             CYAML_ARRAY_LEN(log_formats)),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t admin_fields[] = {
	REQUIRED_TEXT(listen, struct file_admin),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t agent_fields[] = {
	REQUIRED_TEXT(socket, struct file_agent),
	TEXT(group, struct file_agent),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t timeouts_fields[] = {
	TEXT(connect, struct file_timeouts),
	TEXT(response, struct file_timeouts),
	TEXT(idle, struct file_timeouts),
	TEXT(head, struct file_timeouts),
	TEXT(body, struct file_timeouts),
	TEXT(keep_alive, struct file_timeouts),
	TEXT(request, struct file_timeouts),
	TEXT(queue, struct file_timeouts),
	TEXT(stop, struct file_timeouts),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t limits_fields[] = {
	TEXT(connections, struct file_limits),
	TEXT(per_address, struct file_limits),
	TEXT(in_flight, struct file_limits),
	TEXT(queue, struct file_limits),
	TEXT(fields, struct file_limits),
	TEXT(head_size, struct file_limits),
	TEXT(body_size, struct file_limits),
	TEXT(replay_buffer, struct file_limits),
	TEXT(replay_total, struct file_limits),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t forwarded_fields[] = {
	TEXT(via, struct file_forwarded),
	TEXT(x_forwarded, struct file_forwarded),
	TEXT(forwarded, struct file_forwarded),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t trace_fields[] = {
	CYAML_FIELD_ENUM_PTR("kernel", OPTIONAL | CYAML_FLAG_STRICT, struct file_trace, kernel, trace_modes,
                             CYAML_ARRAY_LEN(trace_modes)),
	TEXT(events_per_cpu, struct file_trace),
	TEXT(interrupts, struct file_trace),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t config_fields[] = {
	TEXT(listen, struct file_config),
	CYAML_FIELD_SEQUENCE("servers", OPTIONAL, struct file_config, servers, &server_value, 1,
                             TAILOR_CONFIG_SERVERS_MAX),
	CYAML_FIELD_ENUM_PTR("mode", OPTIONAL | CYAML_FLAG_STRICT, struct file_config, mode, modes, CYAML_ARRAY_LEN(modes)),
	TEXT(user, struct file_config),
	TEXT(workers, struct file_config),
	SECTION(slow),
	SECTION(failover),
	SECTION(timelines),
	SECTION(priority),
	SECTION(access_log),
	SECTION(admin),
	SECTION(agent),
	SECTION(timeouts),
	SECTION(limits),
	SECTION(forwarded),
	CYAML_FIELD_SEQUENCE("upgrade", OPTIONAL, struct file_config, upgrade, &text_value, 0, TAILOR_CONFIG_UPGRADES_MAX),
	SECTION(trace),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t config_value = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct file_config, config_fields),
};

/* libcyaml tells what is wrong only in its log: the reason first, then the places from the inside out. */
static void collect_problem(cyaml_log_t level, void *context, const char *format, va_list arguments)
{
	struct file_problem *problem = context;
	char text[256], outer[64];
	char *message, *place;

	(void)level;
	/* The format is libcyaml's own. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	vsnprintf(text, sizeof(text), format, arguments);
#pragma GCC diagnostic pop
	text[strcspn(text, "\n")] = '\0';
	message = strncmp(text, "Load: ", 6) == 0 ? text + 6 : text;
	if (!problem->text[0]) {
		snprintf(problem->text, sizeof(problem->text), "%s", message);
		return;
	}
	place = strstr(text, "(line: ");
	if (place && problem->line == 0)
		sscanf(place, "(line: %u", &problem->line);
	if (sscanf(message, " in mapping field '%63[^']'", outer) == 1) {
		char inner[sizeof(problem->field)];

		memcpy(inner, problem->field, sizeof(inner));
		snprintf(problem->field, sizeof(problem->field), "%s%s%s", outer, inner[0] ? "." : "", inner);
	}
}

static cyaml_config_t loader(struct file_problem *problem)
{
	return (cyaml_config_t){.log_fn = problem ? collect_problem : NULL,
	                        .log_ctx = problem,
	                        .mem_fn = cyaml_mem,
	                        .log_level = CYAML_LOG_WARNING,
	                        .flags = CYAML_CFG_NO_ALIAS | CYAML_CFG_IGNORE_UNKNOWN_KEYS};
}

/* Where libcyaml's log says only where something is wrong. */
static void give_reason(cyaml_err_t error, struct file_problem *problem)
{
	/* What is missing it places at the last key of the mapping, and mappings with keys that must be there are all at the top. */
	if (strncmp(problem->text, "Missing", 7) == 0)
		problem->field[strcspn(problem->field, ".")] = '\0';
	problem->alias = error == CYAML_ERR_ALIAS;
	if (problem->text[0] && strcmp(problem->text, "Backtrace:") != 0)
		return;
	if (error == CYAML_ERR_INTERNAL_ERROR)
		problem->field[0] = '\0'; /* of the key before */
	snprintf(problem->text, sizeof(problem->text), "%s",
	         error == CYAML_ERR_ALIAS            ? "is an alias; write the value itself"
	         : error == CYAML_ERR_INTERNAL_ERROR ? "a key is not a plain word"
	                                             : cyaml_strerror(error));
}

const cyaml_schema_field_t *file_config_fields(void)
{
	return config_fields;
}

int file_config_load(const char *text, unsigned long length, struct file_config **ret_file, struct file_problem *ret_problem)
{
	cyaml_config_t config = loader(ret_problem);
	cyaml_err_t error;

	memset(ret_problem, 0, sizeof(*ret_problem));
	*ret_file = NULL;
	error = cyaml_load_data((const uint8_t *)text, length, &config, &config_value, (cyaml_data_t **)ret_file, NULL);
	if (error == CYAML_ERR_OOM)
		return -ENOMEM;
	if (error != CYAML_OK)
		give_reason(error, ret_problem);
	return error == CYAML_OK ? 0 : -EINVAL;
}

void file_config_free(struct file_config *file)
{
	cyaml_config_t config = loader(NULL);

	if (file)
		cyaml_free(&config, &config_value, file, 0);
}
