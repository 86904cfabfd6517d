/* SPDX-License-Identifier: Apache-2.0 */
#include <argp.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/config_file.h"
#include "cli/doctor.h"
#include "collect/kernel.h"
#include "ring/ring.h"

static void look_at_host(struct findings *findings)
{
	struct utsname host;
	unsigned int major = 0, minor = 0;

	if (uname(&host) != 0 || sscanf(host.release, "%u.%u", &major, &minor) != 2)
		return;
	if (major > 6 || (major == 6 && minor >= 1))
		doctor_add(findings, STANDING_GOOD, "kernel", "Linux %s (6.1 or later is needed)", host.release);
	else
		doctor_add(findings, STANDING_MISSING, "kernel", "Linux %s is older than 6.1: upgrade the kernel", host.release);
}

static void look_at_ring(struct findings *findings)
{
	const struct tailor_ring_options options = {.entries = 8, .buffers = 8, .buffer_bytes = 4096};
	struct tailor_ring *ring = NULL;
	int error = tailor_ring_open(&options, &ring);

	if (error) {
		doctor_add(findings, STANDING_MISSING, "io_uring", "%s", tailor_ring_explain(error));
		return;
	}
	tailor_ring_close(ring);
	doctor_add(findings, STANDING_GOOD, "io_uring", "the proxy's data path works");
}

static void look_at_kernel(struct findings *findings)
{
	struct tailor_probe probes[TAILOR_PROBES_MAX];
	char error[256] = "";
	int count = tailor_kernel_survey(probes, TAILOR_PROBES_MAX, error, sizeof(error));

	if (count < 0) {
		doctor_add(findings, STANDING_MISSING, "kernel events", "%s", error);
		return;
	}
	doctor_add(findings, STANDING_GOOD, "kernel events", "BPF programs load");
	for (int i = 0; i < count; i++) {
		char what[48];

		snprintf(what, sizeof(what), "probe %s", probes[i].name);
		if (probes[i].attached)
			doctor_add(findings, STANDING_GOOD, what, "%s", probes[i].question);
		else
			doctor_add(findings, probes[i].required ? STANDING_MISSING : STANDING_MISSING_OPTIONAL, what, "%s: %s",
			    probes[i].question, probes[i].reason);
	}
}

/* Looks through a process's mappings for HotSpot and for our agent. */
static void look_at_mappings(const char *pid, int *ret_is_jvm, int *ret_has_agent)
{
	char path[64], line[1024];
	cleanup_fclose FILE *maps = NULL;

	*ret_is_jvm = *ret_has_agent = 0;
	snprintf(path, sizeof(path), "/proc/%s/maps", pid);
	maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps)) {
		*ret_is_jvm |= strstr(line, "/libjvm.so") != NULL;
		*ret_has_agent |= strstr(line, "/libtailor-agent.so") != NULL;
	}
}

static void look_at_jvms(struct findings *findings)
{
	DIR *processes = opendir("/proc");
	struct dirent *entry;
	int jvms = 0;

	while (processes && (entry = readdir(processes))) {
		int is_jvm, has_agent;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		look_at_mappings(entry->d_name, &is_jvm, &has_agent);
		if (!is_jvm)
			continue;
		jvms++;
		if (has_agent)
			doctor_add(findings, STANDING_GOOD, "JVM", "pid %s has the agent", entry->d_name);
		else
			doctor_add(findings, STANDING_INFORMATION, "JVM", "pid %s runs without the agent: `tailor attach %s`, or start it with -agentpath:.../libtailor-agent.so=socket=PATH",
			    entry->d_name, entry->d_name);
	}
	if (processes)
		closedir(processes);
	if (!jvms)
		doctor_add(findings, STANDING_INFORMATION, "JVM", "none of this user's processes is a HotSpot JVM now");
}

static int print_json(const struct findings *findings)
{
	json_t *list = json_array();
	json_t *root = json_pack("{s:o}", "findings", list);
	int failed;

	if (!root)
		return 1;
	for (size_t i = 0; i < findings->count; i++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "what", findings->list[i].what, "standing",
		                                      doctor_standing_name(findings->list[i].standing), "text", findings->list[i].text));
	failed = json_dumpf(root, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(root);
	return failed;
}

static void print_table(const struct findings *findings)
{
	for (size_t i = 0; i < findings->count; i++)
		printf("%-8s %-26s %s\n", doctor_standing_name(findings->list[i].standing), findings->list[i].what, findings->list[i].text);
}

struct doctor_arguments {
	const char *config;
	int json;
};

static const struct argp_option options[] = {
	{"config", 'c', "FILE", 0, "Also say what the proxy that runs with this configuration has lost, and which of its servers are down", 0},
	{"json", 'j', NULL, 0, "Print {\"findings\": [{what, standing, text}]}", 0},
	{0},
};

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct doctor_arguments *arguments = state->input;

	switch (key) {
	case 'c': arguments->config = cli_config_option(state, arguments->config, value); return 0;
	case 'j': arguments->json = 1; return 0;
	case ARGP_KEY_ARG: argp_error(state, "unexpected \"%s\"", value); return EINVAL;
	default: return ARGP_ERR_UNKNOWN;
	}
}

int tailor_command_doctor(int argc, char **argv)
{
	static const struct argp argp = {
		options, parse_option, "[-c FILE]",
		"Says what this host allows and what is missing, with the remedy. Loads the probes for a moment and leaves nothing behind.\v"
		"ok: works. limited: detail is lost. missing: a feature is lost (exit code 1). info: good to know.\n",
		NULL, NULL, NULL,
	};
	struct findings findings = {0};
	struct doctor_arguments arguments = {0};
	int missing = 0;

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	look_at_host(&findings);
	look_at_ring(&findings);
	look_at_kernel(&findings);
	look_at_jvms(&findings);
	if (arguments.config && doctor_look_at_proxy(&findings, arguments.config) != 0)
		return TAILOR_EXIT_USAGE;
	if (!arguments.json)
		print_table(&findings);
	else if (print_json(&findings) != 0)
		return TAILOR_EXIT_FAILED;
	for (size_t i = 0; i < findings.count; i++)
		missing |= findings.list[i].standing == STANDING_MISSING;
	return missing ? TAILOR_EXIT_FAILED : TAILOR_EXIT_DONE;
}
