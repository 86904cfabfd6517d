/* SPDX-License-Identifier: Apache-2.0 */
/* Who belongs to whom, with real processes; what is told to the proxy, the observer and the kernel is only noted down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/proxy_run.h"
#include "collect/process.h"

static struct {
	pid_t listening[TAILOR_CONFIG_SERVERS_MAX]; /* by the address's port */
	struct tailor_jvm_page *attached[TAILOR_CONFIG_SERVERS_MAX];
	unsigned int gone[TAILOR_CONFIG_SERVERS_MAX];
	uint64_t alive_ns; /* of the last of them */
	pid_t process[TAILOR_CONFIG_SERVERS_MAX];
	pid_t traced[8];
	size_t traced_count;
	pid_t told[TAILOR_CONFIG_SERVERS_MAX]; /* whose stops are this server's */
	unsigned int said;
	int shortage; /* what keeps this process from looking, 0: nothing */
} world;

void proxy_say(const char *format, ...)
{
	(void)format;
	world.said++;
}

int tailor_process_listening(const struct tailor_address *address, pid_t *ret_pid)
{
	if (world.shortage)
		return world.shortage;
	*ret_pid = world.listening[tailor_address_port(address) - 9200];
	return *ret_pid ? 0 : -ESRCH;
}

void tailor_proxy_jvm_attach(struct tailor_proxy *proxy, unsigned int server, struct tailor_jvm_page *page,
                             const int wakers[TAILOR_JVM_WAKERS])
{
	(void)proxy;
	(void)wakers;
	world.attached[server] = page;
}

void tailor_proxy_jvm_detach(struct tailor_proxy *proxy, unsigned int server)
{
	(void)proxy;
	world.attached[server] = NULL;
}

void tailor_proxy_server_gone(struct tailor_proxy *proxy, unsigned int server, uint64_t alive_ns)
{
	(void)proxy;
	world.gone[server]++;
	world.alive_ns = alive_ns;
}

void tailor_observer_jvm(struct tailor_observer *observer, size_t server, struct tailor_jvm *jvm)
{
	(void)observer;
	(void)server;
	(void)jvm;
}

void tailor_observer_process(struct tailor_observer *observer, size_t server, pid_t pid)
{
	(void)observer;
	world.process[server] = pid;
}

int tailor_kernel_trace(struct tailor_kernel *kernel, pid_t pid, enum tailor_traced_role role)
{
	(void)kernel;
	(void)role;
	world.traced[world.traced_count++] = pid;
	return 0;
}

int tailor_kernel_untrace(struct tailor_kernel *kernel, pid_t pid)
{
	(void)kernel;
	for (size_t i = 0; i < world.traced_count; i++) {
		if (world.traced[i] == pid)
			world.traced[i] = world.traced[--world.traced_count];
	}
	return 0;
}

int tailor_kernel_tell_stops(struct tailor_kernel *kernel, unsigned int server, pid_t pid)
{
	(void)kernel;
	world.told[server] = pid;
	return 0;
}

struct tailor_jvm *tailor_jvm_ref(struct tailor_jvm *jvm)
{
	jvm->references++;
	return jvm;
}

void tailor_jvm_unref(struct tailor_jvm *jvm)
{
	assert_true(jvm->references-- > 0);
}

static struct tailor_jvm_page pages[4];

static struct tailor_jvm new_jvm(pid_t pid, size_t page)
{
	return (struct tailor_jvm){.pid = pid, .page = &pages[page], .references = 1};
}

static pid_t new_process(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

/* It stays a zombie, as under a parent that does not care. */
static void kill_process(pid_t pid)
{
	siginfo_t information;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &information, WEXITED | WNOWAIT), 0);
}

static void reap(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void run_open(struct proxy_run *run)
{
	memset(&world, 0, sizeof(world));
	memset(run, 0, sizeof(*run));
	pthread_mutex_init(&run->lock, NULL);
	run->kernel = (struct tailor_kernel *)(void *)run; /* never looked into */
	run->config.servers = 2;
	assert_int_equal(tailor_address_parse("127.0.0.1:9200", &run->config.server[0].address), 0);
	assert_int_equal(tailor_address_parse("127.0.0.1:9201", &run->config.server[1].address), 0);
	proxy_servers_init(run);
}

static void an_agent_that_waits_for_minutes_is_still_given_to_its_server(void **state)
{
	pid_t pid = new_process();
	struct tailor_jvm jvm = new_jvm(pid, 0);
	struct proxy_run run;

	(void)state;
	run_open(&run);
	proxy_servers_refresh(&run);
	proxy_servers_attached(&run, &jvm);
	assert_true(proxy_servers_unsettled(&run));
	run.unmatched[0].since_ns -= 300 * TAILOR_NS_PER_S;
	world.said = 0;
	proxy_servers_refresh(&run);
	proxy_servers_refresh(&run);
	assert_int_equal(world.said, 1); /* told once */
	assert_false(proxy_servers_unsettled(&run));
	assert_null(world.attached[0]);
	world.listening[0] = pid; /* now it has recovered its index */
	proxy_servers_refresh(&run);
	assert_ptr_equal(world.attached[0], jvm.page);
	proxy_servers_detached(&run, &jvm);
	assert_null(world.attached[0]);
	proxy_servers_release(&run);
	assert_int_equal(jvm.references, 1);
	reap(pid);
}

static void a_dead_server_that_is_not_reaped_is_left_for_its_successor_at_once(void **state)
{
	pid_t first = new_process(), second = new_process();
	struct tailor_jvm before = new_jvm(first, 0), after = new_jvm(second, 1);
	uint64_t began_ns = tailor_clock_ns(), alive_ns;
	struct proxy_run run;

	(void)state;
	run_open(&run);
	world.listening[0] = first;
	proxy_servers_refresh(&run);
	proxy_servers_attached(&run, &before);
	assert_ptr_equal(world.attached[0], before.page);
	assert_int_equal(world.gone[0], 0);
	proxy_servers_refresh(&run);
	alive_ns = tailor_clock_ns();
	kill_process(first);
	world.listening[0] = 0;
	proxy_servers_refresh(&run);
	assert_in_range(world.alive_ns, began_ns, alive_ns);
	/* Who waits for its answer is told, once. */
	proxy_servers_refresh(&run);
	assert_int_equal(world.gone[0], 1);
	assert_int_equal(world.process[0], 0);
	assert_int_equal(world.traced_count, 0);
	assert_int_equal(world.told[0], 0);
	proxy_servers_detached(&run, &before);
	world.listening[0] = second;
	proxy_servers_attached(&run, &after);
	proxy_servers_refresh(&run);
	assert_int_equal(world.process[0], second);
	assert_int_equal(world.told[0], second);
	assert_int_equal(world.told[1], 0);
	assert_ptr_equal(world.attached[0], after.page);
	assert_int_equal(world.traced_count, 1);
	proxy_servers_detached(&run, &after);
	proxy_servers_release(&run);
	assert_int_equal(before.references, 1);
	assert_int_equal(after.references, 1);
	reap(first);
	reap(second);
}

static void pauses_of_a_process_that_lives_on_behind_its_successor_are_not_the_servers(void **state)
{
	pid_t first = new_process(), second = new_process();
	struct tailor_jvm before = new_jvm(first, 0);
	struct proxy_run run;

	(void)state;
	run_open(&run);
	world.listening[0] = first;
	proxy_servers_refresh(&run);
	proxy_servers_attached(&run, &before);
	assert_ptr_equal(world.attached[0], before.page);
	world.listening[0] = second;
	run.server[0].looked_ns = 0;
	proxy_servers_refresh(&run);
	assert_int_equal(world.process[0], second);
	assert_null(world.attached[0]);
	/* It comes back when the listener does. */
	world.listening[0] = first;
	run.server[0].looked_ns = 0;
	proxy_servers_refresh(&run);
	assert_ptr_equal(world.attached[0], before.page);
	proxy_servers_detached(&run, &before);
	proxy_servers_release(&run);
	assert_int_equal(before.references, 1);
	reap(first);
	reap(second);
}

static void the_agent_that_waited_longest_makes_room_for_new_ones(void **state)
{
	pid_t pid = new_process();
	struct tailor_jvm strangers[UNMATCHED_MAX], jvm = new_jvm(pid, 0);
	struct proxy_run run;

	(void)state;
	run_open(&run);
	for (int i = 0; i < UNMATCHED_MAX; i++) {
		strangers[i] = new_jvm(1000000 + i, 1);
		proxy_servers_attached(&run, &strangers[i]);
	}
	proxy_servers_attached(&run, &jvm);
	world.listening[1] = pid;
	proxy_servers_refresh(&run);
	assert_ptr_equal(world.attached[1], jvm.page);
	proxy_servers_detached(&run, &jvm);
	proxy_servers_release(&run);
	for (int i = 0; i < UNMATCHED_MAX; i++)
		assert_int_equal(strangers[i].references, 1);
	reap(pid);
}

static void a_server_is_not_gone_because_nobody_could_look(void **state)
{
	pid_t pid = new_process();
	struct proxy_run run;

	(void)state;
	run_open(&run);
	world.listening[0] = pid;
	proxy_servers_refresh(&run);
	assert_int_equal(world.process[0], pid);
	world.said = 0;
	world.shortage = -EMFILE;
	run.server[0].looked_ns = 0;
	proxy_servers_refresh(&run);
	assert_int_equal(world.process[0], pid);
	assert_int_equal(world.said, 0);
	/* That it has ended is known all the same. */
	reap(pid);
	run.server[0].looked_ns = 0;
	proxy_servers_refresh(&run);
	assert_int_equal(world.process[0], 0);
	world.shortage = 0;
	proxy_servers_release(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_agent_that_waits_for_minutes_is_still_given_to_its_server),
		cmocka_unit_test(a_dead_server_that_is_not_reaped_is_left_for_its_successor_at_once),
		cmocka_unit_test(pauses_of_a_process_that_lives_on_behind_its_successor_are_not_the_servers),
		cmocka_unit_test(a_server_is_not_gone_because_nobody_could_look),
		cmocka_unit_test(the_agent_that_waited_longest_makes_room_for_new_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
