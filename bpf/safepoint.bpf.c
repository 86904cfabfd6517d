/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * When a JVM stopped its threads and for what: one program behind the USDT probes of libjvm.so. It runs on the VM Thread,
 * which all other threads of the JVM wait for.
 */
#include "emit.bpf.h"

#include <bpf/bpf_tracing.h>

#include "stop.bpf.h"

/*
 * The attachment's cookie says what the place in the JVM is and where its arguments are; as in src/collect/kernel_usdt.h.
 * An operand is a register of the entry's frame (index + 1 in words; 0: no such argument), what it points to, or a constant.
 */
#define COOKIE_KIND(cookie) ((uint8_t)(cookie))
#define COOKIE_NAME(cookie) ((uint32_t)((cookie) >> 8) & 0xffffff)
#define COOKIE_MODE(cookie) ((uint32_t)((cookie) >> 32) & 0xffffff)
#define OPERAND_REGISTER(operand) ((operand) & 31)
#define OPERAND_IS_MEMORY(operand) ((operand) & 32)
#define OPERAND_VALUE(operand) ((int16_t)((operand) >> 8))
#define OPERAND_CONSTANT 31
#define REGISTERS 21 /* 64-bit words of x86-64's pt_regs */

/* The operand's value, read as `bytes` of memory where it is in memory; 0 where it cannot be had. */
static __always_inline uint64_t operand_value(const struct pt_regs *regs, uint32_t operand, uint32_t bytes)
{
	uint32_t number = OPERAND_REGISTER(operand);
	uint64_t value = 0, content = 0;

	if (number == OPERAND_CONSTANT)
		return (uint64_t)(int64_t)OPERAND_VALUE(operand);
	if (number == 0 || number > REGISTERS)
		return 0;
	if (bpf_probe_read_kernel(&value, sizeof(value), (const uint64_t *)regs + number - 1))
		return 0;
	if (!OPERAND_IS_MEMORY(operand))
		return value;
	if (bpf_probe_read_user(&content, bytes, (const void *)(value + (int64_t)OPERAND_VALUE(operand))))
		return 0;
	return content;
}

/* Fills the slot behind an operation's event with its name; without one the event stays without a text that can be read. */
static __always_inline void emit_name(const struct emission *emission, const char *name)
{
	uint64_t position = emission->position + 1;
	struct tailor_event *slot = slot_at(bpf_get_smp_processor_id(), position);
	struct tailor_text *text = (struct tailor_text *)slot;
	long length;

	if (!slot || !emission_claim(emission, slot, position))
		return;
	text->kind = TAILOR_EVENT_TEXT;
	text->reserved = 0;
	length = bpf_probe_read_user_str(text->text, sizeof(text->text), name);
	text->length = length > 0 ? length - 1 : 0; /* without the terminator */
	tailor_slot_publish(slot, position);
}

SEC("uprobe")
int on_jvm_probe(struct pt_regs *regs)
{
	uint64_t cookie = bpf_get_attach_cookie(regs), task = bpf_get_current_pid_tgid();
	uint32_t kind = COOKIE_KIND(cookie);
	struct tailor_event *event;
	struct emission emission;
	const char *name = NULL;
	uint32_t mode = 0;

	if (role_of(TAILOR_TASK_PID(task)) != ROLE_SERVER)
		return 0;
	if (kind == TAILOR_EVENT_SAFEPOINT_BEGIN || kind == TAILOR_EVENT_SAFEPOINT_END)
		stop_safepoint(TAILOR_TASK_PID(task), kind == TAILOR_EVENT_SAFEPOINT_BEGIN ? bpf_ktime_get_ns() : 0);
	if (kind == TAILOR_EVENT_VM_OPERATION_BEGIN || kind == TAILOR_EVENT_VM_OPERATION_END) {
		name = (const char *)operand_value(regs, COOKIE_NAME(cookie), sizeof(uint64_t));
		mode = (uint32_t)operand_value(regs, COOKIE_MODE(cookie), sizeof(uint32_t));
	}
	event = emit_begin_with(kind, name ? 1 : 0, EMIT_PREEMPTIBLE, &emission);
	if (!event)
		return 0;
	event->time_ns = bpf_ktime_get_ns();
	event->extra = mode ? 1 : 0;
	event->request = 0;
	event->pid = TAILOR_TASK_PID(task);
	event->tid = TAILOR_TASK_TID(task);
	event->arg[0] = 0;
	event->arg[1] = 0;
	event->arg[2] = 0;
	if (name) /* first: who sees the event finds its text */
		emit_name(&emission, name);
	emit_end(event, &emission);
	return 0;
}
