/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc/PID/cgroup of many kinds of hosts says, each with a hierarchy of its own beside it. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cpu_group.h"

static char directory[] = "/tmp/tailor-test-XXXXXX";

static const char *path_of(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static void write_file(const char *name, const char *text)
{
	FILE *file = fopen(path_of(name), "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static bool has_weight(const char *membership)
{
	write_file("cgroup", membership);
	return tailor_cpu_group_has_weight(path_of("cgroup"), directory);
}

static void the_second_version_shares_cpu_where_a_group_has_a_weight(void **state)
{
	(void)state;
	assert_int_equal(mkdir(path_of("system.slice"), 0700), 0);
	assert_int_equal(mkdir(path_of("system.slice/proxy.service"), 0700), 0);
	assert_false(has_weight("0::/system.slice/proxy.service\n"));
	write_file("system.slice/proxy.service/cpu.weight", "100\n");
	assert_true(has_weight("0::/system.slice/proxy.service\n"));
	assert_true(has_weight("0::/system.slice/proxy.service"));
	assert_false(has_weight("0::/system.slice\n"));
	assert_false(has_weight("0::/\n"));
	assert_false(has_weight("0::/proxy.service\n"));
}

static void a_group_without_a_weight_is_part_of_the_one_above_it_that_has_one(void **state)
{
	(void)state;
	assert_int_equal(mkdir(path_of("user.slice"), 0700), 0);
	assert_false(has_weight("0::/user.slice/a/b\n"));
	write_file("user.slice/cpu.weight", "100\n");
	assert_true(has_weight("0::/user.slice\n"));
	assert_true(has_weight("0::/user.slice/a\n"));
	assert_true(has_weight("0::/user.slice/a/b\n"));
	/* Of a namespace, the root is any group. */
	write_file("cpu.weight", "100\n");
	assert_true(has_weight("0::/\n"));
	assert_int_equal(unlink(path_of("cpu.weight")), 0);
}

static void the_first_version_does_below_the_root_of_its_cpu_hierarchy(void **state)
{
	(void)state;
	assert_true(has_weight("12:memory:/a\n4:cpu,cpuacct:/a\n0::/\n"));
	assert_true(has_weight("4:cpuacct,cpu:/a\n"));
	assert_false(has_weight("12:memory:/a\n4:cpu,cpuacct:/\n"));
	assert_false(has_weight("4:cpuacct:/a\n3:cpuset:/a\n1:name=systemd:/a\n"));
}

static void a_path_may_be_of_any_length_and_have_colons(void **state)
{
	char line[3 * PATH_MAX] = "0::/";

	(void)state;
	memset(line + strlen(line), 'a', 2 * PATH_MAX);
	assert_false(has_weight(line));
	strcat(line, "\n4:cpu:/a\n");
	assert_true(has_weight(line));
	assert_true(has_weight("4:cpu:/a:b\n"));
}

static void what_cannot_be_read_shares_nothing(void **state)
{
	(void)state;
	assert_false(has_weight(""));
	assert_false(has_weight("\n4\n4:cpu\n::\n"));
	assert_false(tailor_cpu_group_has_weight(path_of("nothing"), directory));
}

static int make_directory(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	static const char *const files[] = {"cgroup", "system.slice/proxy.service/cpu.weight", "system.slice/proxy.service", "system.slice",
	                                    "user.slice/cpu.weight", "user.slice", ""};

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		(void)remove(path_of(files[i]));
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_second_version_shares_cpu_where_a_group_has_a_weight),
		cmocka_unit_test(a_group_without_a_weight_is_part_of_the_one_above_it_that_has_one),
		cmocka_unit_test(the_first_version_does_below_the_root_of_its_cpu_hierarchy),
		cmocka_unit_test(a_path_may_be_of_any_length_and_have_colons),
		cmocka_unit_test(what_cannot_be_read_shares_nothing),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
