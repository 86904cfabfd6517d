/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The config file as libcyaml loads it: structure and types are checked, values with units are still
 * text. Absent optional strings are NULL; so are `listen` and `servers` without the file being refused.
 */
#ifndef TAILOR_CONFIG_FILE_H
#define TAILOR_CONFIG_FILE_H

#include <cyaml/cyaml.h>
#include <stdbool.h>
#include <stdint.h>

/* More than there can be routes: several methods may be one. */
#define FILE_REPLAYS_MAX 64

struct file_server {
	char *name;
	char *address;
};

struct file_slow {
	char *threshold;
	char *baseline_one_in;
};

struct file_budget {
	char *fraction;
	char *floor;
};

struct file_failover {
	uint32_t *on;  /* bits 1 << enum tailor_stop_kind */
	char **replay; /* a method, or a method and a path */
	unsigned int replay_count;
	int *when; /* enum tailor_config_replay_when */
	struct file_budget *budget;
	char *switch_after;
	int *predict; /* 0 or 1 */
	int *collect; /* enum tailor_config_collect */
};

struct file_timelines {
	char *path;
	char *max_size;
};

struct file_priority {
	char *nice;
	char *fifo;
	char *busy_poll;
};

struct file_access_log {
	char *path;
	int *format; /* enum tailor_config_log_format */
};

struct file_admin {
	char *listen;
};

struct file_agent {
	char *socket;
	char *group;
};

struct file_timeouts {
	char *connect;
	char *response;
	char *idle;
	char *head;
	char *body;
	char *keep_alive;
	char *request;
	char *queue;
	char *stop;
};

struct file_limits {
	char *connections;
	char *per_address;
	char *in_flight;
	char *queue;
	char *fields;
	char *head_size;
	char *body_size;
	char *replay_buffer;
	char *replay_total;
};

struct file_forwarded {
	char *via;
	char *x_forwarded; /* libcyaml's own flags take any word for one */
	char *forwarded;
};

struct file_trace {
	int *kernel; /* enum tailor_config_trace */
	char *events_per_cpu;
	char *interrupts;
};

struct file_config {
	char *listen;
	struct file_server *servers;
	unsigned int servers_count;
	int *mode; /* enum tailor_config_mode */
	char *user;
	char *workers; /* a number or "auto" */
	struct file_slow *slow;
	struct file_failover *failover;
	struct file_timelines *timelines;
	struct file_priority *priority;
	struct file_access_log *access_log;
	struct file_admin *admin;
	struct file_agent *agent;
	struct file_timeouts *timeouts;
	struct file_limits *limits;
	struct file_forwarded *forwarded;
	char **upgrade;
	unsigned int upgrade_count;
	struct file_trace *trace;
};

/* What libcyaml says about the first thing wrong. */
struct file_problem {
	char text[200];    /* its own words, "Invalid ENUM value: foo" */
	char field[64];    /* the path of the field it was in, like slow.threshold; "" at the top */
	unsigned int line; /* roughly where */
	bool alias;        /* refused also where nobody knows the key */
};

/* The keys at the top of a file, each with what it may hold. */
const cyaml_schema_field_t *file_config_fields(void);

/* Loads text; unknown keys are passed over. Returns 0 and *ret_file (file_config_free() it), -EINVAL with *ret_problem, or -ENOMEM. */
int file_config_load(const char *text, unsigned long length, struct file_config **ret_file, struct file_problem *ret_problem);
void file_config_free(struct file_config *file);

#endif /* TAILOR_CONFIG_FILE_H */
