/* SPDX-License-Identifier: Apache-2.0 */
/* Agents that come to the hub: what they hand over, broken offers, and their end. */
#include "jvm_hub_here.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#define SLOTS 64
#define BYTES 12288

static int open_descriptors(void)
{
	DIR *open_now = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(open_now);
	while (readdir(open_now))
		count++;
	closedir(open_now);
	return count;
}

/* What an agent hands over, and by which means a broken one differs. */
struct offer {
	struct tailor_jvm_hello hello;
	struct tailor_jvm_page page;
	size_t hello_bytes;
	size_t memory_bytes;
	int seals;
	size_t descriptors;
	int waker_flags;
	int last_waker_is_pipe;
};

static struct offer good_offer(void)
{
	struct offer offer = {
	        .hello = {.magic = TAILOR_JVM_MAGIC, .version = TAILOR_JVM_VERSION, .pid = 4711, .bytes = BYTES},
	        .page = {.magic = TAILOR_JVM_MAGIC,
	                 .version = TAILOR_JVM_VERSION,
	                 .pid = 4711,
	                 .bytes = BYTES,
	                 .head_offset = 4096,
	                 .slots_offset = 4160,
	                 .slots = SLOTS},
	        .hello_bytes = sizeof(struct tailor_jvm_hello),
	        .memory_bytes = BYTES,
	        .seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
	        .descriptors = 1 + TAILOR_JVM_WAKERS,
	        .waker_flags = EFD_NONBLOCK,
	};

	return offer;
}

/* Makes and sends it; the sender's own descriptors are closed again but for the memory, which is returned. */
static int send_offer(int fd, const struct offer *offer)
{
	char bytes[sizeof(offer->hello) + 8] = {0};
	struct iovec vector = {.iov_base = bytes, .iov_len = offer->hello_bytes};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(40 * sizeof(int))];
	} control;
	struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
	int descriptors[40], ends[2];

	memcpy(bytes, &offer->hello, sizeof(offer->hello));
	descriptors[0] = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(descriptors[0], (off_t)offer->memory_bytes), 0);
	assert_int_equal(pwrite(descriptors[0], &offer->page, sizeof(offer->page), 0), sizeof(offer->page));
	if (offer->seals)
		assert_int_equal(fcntl(descriptors[0], F_ADD_SEALS, offer->seals), 0);
	for (size_t i = 1; i < 40; i++)
		descriptors[i] = eventfd(0, EFD_CLOEXEC | offer->waker_flags);
	if (offer->last_waker_is_pipe) {
		assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
		close(descriptors[TAILOR_JVM_WAKERS]);
		close(ends[1]);
		descriptors[TAILOR_JVM_WAKERS] = ends[0];
	}
	if (offer->descriptors) {
		memset(&control, 0, sizeof(control));
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(offer->descriptors * sizeof(int));
		CMSG_FIRSTHDR(&message)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&message)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&message)->cmsg_len = CMSG_LEN(offer->descriptors * sizeof(int));
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), descriptors, offer->descriptors * sizeof(int));
	}
	assert_int_equal(sendmsg(fd, &message, MSG_NOSIGNAL), offer->hello_bytes);
	for (size_t i = 1; i < 40; i++)
		close(descriptors[i]);
	return descriptors[0];
}

static void an_agent_is_attached_and_its_events_can_be_read(void **state)
{
	struct tailor_jvm_hub *hub = new_hub();
	struct offer offer = good_offer();
	int fd = connect_peer(), memory = send_offer(fd, &offer);
	struct tailor_event event = {.kind = TAILOR_EVENT_GC_START, .arg = {42}}, copy;
	struct tailor_channel theirs;
	char *mapped = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);

	(void)state;
	assert_ptr_not_equal(mapped, MAP_FAILED);
	dispatch(hub);
	assert_int_equal(seen.attached, 1);
	assert_int_equal(seen.refused, 0);
	assert_int_equal(seen.jvm->pid, getpid());
	assert_int_equal(seen.jvm->own_pid, 4711);
	assert_int_equal(seen.jvm->channel.mask, SLOTS - 1);

	theirs.head = (void *)(mapped + 4096);
	theirs.slots = (void *)(mapped + 4160);
	theirs.mask = SLOTS - 1;
	tailor_channel_write(&theirs, &event, "text", 4);
	assert_int_equal(tailor_channel_end(&seen.jvm->channel), 2);
	assert_int_equal(tailor_channel_read(&seen.jvm->channel, 0, &copy), TAILOR_READ_OK);
	assert_int_equal(copy.kind, TAILOR_EVENT_GC_START);
	assert_int_equal(copy.arg[0], 42);
	for (int i = 0; i < TAILOR_JVM_WAKERS; i++) {
		assert_true(seen.jvm->wakers[i] >= 0);
		assert_true(fcntl(seen.jvm->wakers[i], F_GETFD) & FD_CLOEXEC);
	}
	close(fd);
	dispatch(hub);
	assert_int_equal(seen.detached, 1);
	munmap(mapped, BYTES);
	close(memory);
	tailor_jvm_hub_close(hub);
}

static void a_reference_keeps_a_jvm_mapped_after_it_is_gone(void **state)
{
	int before = open_descriptors();
	struct tailor_jvm_hub *hub = new_hub();
	struct offer offer = good_offer();
	int fd = connect_peer();
	struct tailor_jvm *jvm;

	(void)state;
	close(send_offer(fd, &offer));
	dispatch(hub);
	jvm = tailor_jvm_ref(seen.jvm);
	close(fd);
	dispatch(hub);
	assert_int_equal(seen.detached, 1);
	tailor_jvm_hub_close(hub);
	assert_int_equal(jvm->page->slots, SLOTS);
	assert_int_equal(open_descriptors(), before + TAILOR_JVM_WAKERS);
	tailor_jvm_unref(jvm);
	assert_int_equal(open_descriptors(), before);
}

static void a_page_that_changes_later_changes_no_size(void **state)
{
	struct tailor_jvm_hub *hub = new_hub();
	struct offer offer = good_offer();
	int fd = connect_peer(), memory = send_offer(fd, &offer);
	const uint64_t huge = UINT64_C(1) << 40;

	(void)state;
	dispatch(hub);
	assert_int_equal(pwrite(memory, &huge, sizeof(huge), offsetof(struct tailor_jvm_page, slots)), sizeof(huge));
	assert_int_equal(pwrite(memory, &huge, sizeof(huge), offsetof(struct tailor_jvm_page, bytes)), sizeof(huge));
	assert_int_equal(seen.jvm->page->slots, huge);
	assert_int_equal(seen.jvm->channel.mask, SLOTS - 1);
	assert_int_equal(seen.jvm->bytes, BYTES);
	close(fd);
	close(memory);
	tailor_jvm_hub_close(hub);
	assert_int_equal(seen.detached, 1);
}

/* Each breaks one thing of a good offer. */
/* clang-format off */
static void break_hello_magic(struct offer *o) { o->hello.magic++; }
static void break_hello_version(struct offer *o) { o->hello.version++; }
static void break_hello_short(struct offer *o) { o->hello_bytes--; }
static void break_hello_long(struct offer *o) { o->hello_bytes++; }
static void break_no_descriptors(struct offer *o) { o->descriptors = 0; }
static void break_one_missing(struct offer *o) { o->descriptors--; }
static void break_one_too_many(struct offer *o) { o->descriptors++; }
static void break_many_too_many(struct offer *o) { o->descriptors = 40; }
static void break_unsealed(struct offer *o) { o->seals = 0; }
static void break_only_grow_sealed(struct offer *o) { o->seals = F_SEAL_GROW; }
static void break_memory_smaller(struct offer *o) { o->memory_bytes = 8192; }
static void break_memory_bigger(struct offer *o) { o->memory_bytes = 16384; }
static void break_hello_tiny(struct offer *o) { o->hello.bytes = o->page.bytes = o->memory_bytes = 512; }
static void break_hello_huge(struct offer *o) { o->hello.bytes = o->page.bytes = UINT64_C(1) << 62; }
static void break_page_magic(struct offer *o) { o->page.magic = 0; }
static void break_page_version(struct offer *o) { o->page.version = TAILOR_JVM_VERSION + 1; }
static void break_page_pid(struct offer *o) { o->page.pid = 1; }
static void break_page_bytes(struct offer *o) { o->page.bytes *= 2; }
static void break_slots_odd(struct offer *o) { o->page.slots = 63; }
static void break_slots_none(struct offer *o) { o->page.slots = 0; }
static void break_slots_too_many(struct offer *o) { o->page.slots = 256; }
static void break_slots_overflow(struct offer *o) { o->page.slots = UINT64_C(1) << 58; }
static void break_head_in_page(struct offer *o) { o->page.head_offset = 0; }
static void break_head_unaligned(struct offer *o) { o->page.head_offset = 4097; }
static void break_head_outside(struct offer *o) { o->page.head_offset = BYTES; }
static void break_head_far_outside(struct offer *o) { o->page.head_offset = ~UINT64_C(63); }
static void break_head_in_slots(struct offer *o) { o->page.head_offset = 4160; }
static void break_slots_outside(struct offer *o) { o->page.slots_offset = BYTES - 64; }
static void break_slots_in_page(struct offer *o) { o->page.slots_offset = 64; }
static void break_slots_unaligned(struct offer *o) { o->page.slots_offset += 8; }
static void break_waker_blocks(struct offer *o) { o->waker_flags = 0; }
static void break_waker_kind(struct offer *o) { o->last_waker_is_pipe = 1; }
/* clang-format on */

static void broken_offers_are_refused_and_leave_nothing_open(void **state)
{
	static void (*const breaks[])(struct offer *) = {
	        break_hello_magic,    break_hello_version,    break_hello_short,    break_hello_long,
	        break_no_descriptors, break_one_missing,      break_one_too_many,   break_many_too_many,
	        break_unsealed,       break_only_grow_sealed, break_memory_smaller, break_memory_bigger,
	        break_hello_tiny,     break_hello_huge,       break_page_magic,     break_page_version,
	        break_page_pid,       break_page_bytes,       break_slots_odd,      break_slots_none,
	        break_slots_too_many, break_slots_overflow,   break_head_in_page,   break_head_unaligned,
	        break_head_outside,   break_head_far_outside, break_head_in_slots,  break_slots_outside,
	        break_slots_in_page,  break_slots_unaligned,  break_waker_blocks,   break_waker_kind,
	};
	struct tailor_jvm_hub *hub = new_hub();

	(void)state;
	for (size_t i = 0; i < sizeof(breaks) / sizeof(breaks[0]); i++) {
		struct offer offer = good_offer();
		int before = open_descriptors(), fd = connect_peer();
		char byte;

		breaks[i](&offer);
		close(send_offer(fd, &offer));
		dispatch(hub);
		if (seen.attached || seen.refused != (int)i + 1)
			fail_msg("offer %zu was not refused", i);
		assert_true(seen.reason[0]);
		assert_int_equal(recv(fd, &byte, 1, 0), 0);
		close(fd);
		assert_int_equal(open_descriptors(), before);
	}
	tailor_jvm_hub_close(hub);
	assert_int_equal(seen.detached, 0);
}

static void a_peer_that_speaks_after_its_hello_is_cut_off(void **state)
{
	int before = open_descriptors();
	struct tailor_jvm_hub *hub = new_hub();
	struct offer offer = good_offer();
	int fd = connect_peer();

	(void)state;
	close(send_offer(fd, &offer));
	dispatch(hub);
	assert_int_equal(seen.attached, 1);
	close(send_offer(fd, &offer));
	dispatch(hub);
	assert_int_equal(seen.attached, 1);
	assert_int_equal(seen.refused, 1);
	assert_int_equal(seen.detached, 1);
	close(fd);
	tailor_jvm_hub_close(hub);
	assert_int_equal(open_descriptors(), before);
}

static void silent_peers_stop_nobody_and_are_limited(void **state)
{
	struct tailor_jvm_hub *hub = new_hub();
	struct offer offer = good_offer();
	int before = open_descriptors(), silent[50], fd;

	(void)state;
	for (int i = 0; i < 50; i++)
		silent[i] = connect_peer();
	dispatch(hub);
	assert_int_equal(seen.refused, 50 - 32);
	fd = connect_peer();
	close(send_offer(fd, &offer));
	dispatch(hub);
	assert_int_equal(seen.attached, 1);
	for (int i = 0; i < 50; i++)
		close(silent[i]);
	dispatch(hub);
	assert_int_equal(seen.detached, 0);
	close(fd);
	dispatch(hub);
	assert_int_equal(seen.detached, 1);
	assert_int_equal(open_descriptors(), before);
	tailor_jvm_hub_close(hub);
}

static void an_agent_that_dies_right_after_its_hello_is_attached_and_detached(void **state)
{
	struct tailor_jvm_hub *hub = new_hub();
	struct offer offer = good_offer();
	int fd = connect_peer();

	(void)state;
	close(send_offer(fd, &offer));
	close(fd);
	dispatch(hub);
	assert_int_equal(seen.attached, 1);
	assert_int_equal(seen.detached, 1);
	tailor_jvm_hub_close(hub);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_agent_is_attached_and_its_events_can_be_read),
		cmocka_unit_test(a_reference_keeps_a_jvm_mapped_after_it_is_gone),
		cmocka_unit_test(a_page_that_changes_later_changes_no_size),
		cmocka_unit_test(broken_offers_are_refused_and_leave_nothing_open),
		cmocka_unit_test(a_peer_that_speaks_after_its_hello_is_cut_off),
		cmocka_unit_test(silent_peers_stop_nobody_and_are_limited),
		cmocka_unit_test(an_agent_that_dies_right_after_its_hello_is_attached_and_detached),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
