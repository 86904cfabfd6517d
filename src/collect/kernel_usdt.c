/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/kernel_usdt.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <tailor/event.h>

#include "base/cleanup.h"

#define SECTIONS_MAX 4096
#define SEGMENTS_MAX 256
#define NOTES_BYTES_MAX (1u << 20) /* JDK 25 has 56 KiB */
#define NAMES_BYTES_MAX (1u << 20)
#define ARGUMENTS_MAX 128
#define NOTE_TYPE 3
#define NOP 0x90

/* As in bpf/safepoint.bpf.c. */
#define COOKIE(kind, name, mode) ((uint64_t)(kind) | (uint64_t)(name) << 8 | (uint64_t)(mode) << 32)
#define OPERAND(number, is_memory, value) ((uint32_t)(number) | ((is_memory) ? 32u : 0) | (uint32_t)(uint16_t)(value) << 8)
#define OPERAND_CONSTANT 31

static const struct {
	const char *provider;
	const char *name;
	enum tailor_event_kind kind;
} wanted[] = {
	{"hs_private", "safepoint__begin", TAILOR_EVENT_SAFEPOINT_BEGIN},
	{"hs_private", "safepoint__end", TAILOR_EVENT_SAFEPOINT_END},
	{"hotspot", "vmops__begin", TAILOR_EVENT_VM_OPERATION_BEGIN},
	{"hotspot", "vmops__end", TAILOR_EVENT_VM_OPERATION_END},
};
#define WANTED (sizeof(wanted) / sizeof(wanted[0]))

static int read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
	ssize_t done = offset > INT64_MAX ? -1 : pread(fd, to, bytes, (off_t)offset);

	if (done < 0)
		return offset > INT64_MAX ? -ENOEXEC : -errno;
	return (size_t)done == bytes ? 0 : -ENOEXEC;
}

/* Reads so much of the file into memory that the caller frees. */
static int read_whole(int fd, uint64_t offset, uint64_t bytes, uint64_t bytes_max, void *ret_memory)
{
	cleanup_free char *memory = NULL;
	int error;

	if (bytes == 0 || bytes > bytes_max)
		return -ENOEXEC;
	memory = malloc(bytes);
	if (!memory)
		return -ENOMEM;
	error = read_at(fd, memory, bytes, offset);
	if (!error)
		*(void **)ret_memory = take_pointer(memory);
	return error;
}

/* What is needed of the file. */
struct elf {
	int fd;
	Elf64_Ehdr header;
	Elf64_Phdr *segments;
	Elf64_Shdr *sections;
	char *names;
	uint64_t names_bytes;
};

static void close_elf(struct elf *elf)
{
	free(elf->segments);
	free(elf->sections);
	free(elf->names);
}

static int open_elf(int fd, struct elf *elf)
{
	const Elf64_Ehdr *header = &elf->header;
	int error;

	*elf = (struct elf){.fd = fd};
	error = read_at(fd, &elf->header, sizeof(elf->header), 0);
	if (error)
		return error;
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != EM_X86_64 ||
	    header->e_phentsize != sizeof(Elf64_Phdr) || header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shstrndx >= header->e_shnum)
		return -ENOEXEC;
	error = read_whole(fd, header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr), SEGMENTS_MAX * sizeof(Elf64_Phdr), &elf->segments);
	if (!error)
		error = read_whole(fd, header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr), SECTIONS_MAX * sizeof(Elf64_Shdr),
		                   &elf->sections);
	if (error)
		return error;
	elf->names_bytes = elf->sections[header->e_shstrndx].sh_size;
	return read_whole(fd, elf->sections[header->e_shstrndx].sh_offset, elf->names_bytes, NAMES_BYTES_MAX, &elf->names);
}

static const Elf64_Shdr *find_section(const struct elf *elf, const char *name)
{
	for (size_t i = 0; i < elf->header.e_shnum; i++) {
		const Elf64_Shdr *section = &elf->sections[i];
		size_t length = strlen(name) + 1;

		if (section->sh_name < elf->names_bytes && elf->names_bytes - section->sh_name >= length &&
		    memcmp(elf->names + section->sh_name, name, length) == 0)
			return section;
	}
	return NULL;
}

/* Where the instruction of that address stands in the file. */
static int find_code(const struct elf *elf, uint64_t address, uint64_t *ret_offset)
{
	for (size_t i = 0; i < elf->header.e_phnum; i++) {
		const Elf64_Phdr *segment = &elf->segments[i];

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) || address < segment->p_vaddr ||
		    address - segment->p_vaddr >= segment->p_filesz)
			continue;
		*ret_offset = segment->p_offset + (address - segment->p_vaddr);
		return 0;
	}
	return -ENOEXEC;
}

/* The number + 1 of the register's word in x86-64's pt_regs; 0: not one that is known. `bytes` of it are meant. */
static unsigned int register_number(const char *name, int bytes)
{
	static const char *const names[][2] = {
		{"r15", "r15d"}, {"r14", "r14d"}, {"r13", "r13d"}, {"r12", "r12d"}, {"rbp", "ebp"}, {"rbx", "ebx"}, {"r11", "r11d"},
		{"r10", "r10d"}, {"r9", "r9d"}, {"r8", "r8d"}, {"rax", "eax"}, {"rcx", "ecx"}, {"rdx", "edx"}, {"rsi", "esi"},
		{"rdi", "edi"}, {"", ""}, {"rip", ""}, {"", ""}, {"", ""}, {"rsp", "esp"},
	};

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (*name && strcmp(names[i][bytes == 4], name) == 0)
			return i + 1;
	}
	return 0;
}

/* "8@%r12", "-4@-20(%rbp)", "-4@$1": size (negative: signed) and place. Returns the operand for the program, 0 when it is
 * none of these or not of `bytes`. */
static uint32_t parse_operand(const char *text, int bytes)
{
	char name[8], end;
	int size, value = 0, length = 0;
	unsigned int number;

	if (sscanf(text, "%d@%n", &size, &length) != 1 || length == 0 || (size != bytes && size != -bytes))
		return 0;
	text += length;
	if (sscanf(text, "$%d%c", &value, &end) == 1)
		return value >= INT16_MIN && value <= INT16_MAX ? OPERAND(OPERAND_CONSTANT, 0, value) : 0;
	if (sscanf(text, "%%%7[a-z0-9]%c", name, &end) == 1) {
		number = register_number(name, bytes);
		return number ? OPERAND(number, 0, 0) : 0;
	}
	if (sscanf(text, "(%%%7[a-z0-9]%c", name, &end) != 2 && sscanf(text, "%d(%%%7[a-z0-9]%c", &value, name, &end) != 3)
		return 0;
	number = register_number(name, 8);
	return number && end == ')' && value >= INT16_MIN && value <= INT16_MAX ? OPERAND(number, 1, value) : 0;
}

/* An operation's arguments are its name, the name's length, and 1 where it runs beside the threads. */
static uint64_t cookie_of(enum tailor_event_kind kind, const char *arguments)
{
	char name[48], length[48], mode[48];

	if (sscanf(arguments, "%47s %47s %47s", name, length, mode) != 3)
		return COOKIE(kind, 0, 0);
	return COOKIE(kind, parse_operand(name, 8), parse_operand(mode, 4));
}

/* Takes the string at *text, which ends before `end`; NULL when it does not. */
static const char *take_string(const char **text, const char *end)
{
	const char *string = *text;
	const char *zero = string < end ? memchr(string, '\0', (size_t)(end - string)) : NULL;

	*text = zero ? zero + 1 : end;
	return zero ? string : NULL;
}

/* One note's content: the place, what .stapsdt.base was when it was written, a counter of listeners, three strings. */
static int take_note(const struct elf *elf, const char *content, size_t bytes, uint64_t base, struct tailor_usdt *place, unsigned int *seen)
{
	const char *end = content + bytes, *text, *provider, *name, *arguments;
	uint64_t words[3]; /* place, base, counter */
	unsigned char instruction;
	size_t i = 0;

	if (bytes < sizeof(words))
		return 0;
	memcpy(words, content, sizeof(words));
	text = content + sizeof(words);
	provider = take_string(&text, end);
	name = take_string(&text, end);
	arguments = take_string(&text, end);
	if (!provider || !name || !arguments)
		return 0;
	while (i < WANTED && (strcmp(provider, wanted[i].provider) != 0 || strcmp(name, wanted[i].name) != 0))
		i++;
	/* Nothing is to be written into the JVM; those that are wanted here have no such counter. */
	if (i == WANTED || words[2] != 0)
		return 0;
	if (find_code(elf, words[0] + (base - words[1]), &place->offset) || read_at(elf->fd, &instruction, 1, place->offset) ||
	    instruction != NOP)
		return 0;
	place->cookie = cookie_of(wanted[i].kind, arguments);
	*seen |= 1u << i;
	return 1;
}

static int take_notes(const struct elf *elf, const char *notes, size_t bytes, uint64_t base, struct tailor_usdt *places)
{
	unsigned int seen = 0;
	int count = 0;

	while (bytes >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		uint64_t owner, content;

		memcpy(&note, notes, sizeof(note));
		owner = ((uint64_t)note.n_namesz + 3) & ~UINT64_C(3);
		content = ((uint64_t)note.n_descsz + 3) & ~UINT64_C(3);
		if (owner + content > bytes - sizeof(note))
			break;
		if (note.n_type == NOTE_TYPE && note.n_namesz == 8 && memcmp(notes + sizeof(note), "stapsdt", 8) == 0 &&
		    count < TAILOR_USDT_MAX)
			count += take_note(elf, notes + sizeof(note) + owner, note.n_descsz, base, &places[count], &seen);
		notes += sizeof(note) + owner + content;
		bytes -= sizeof(note) + owner + content;
	}
	return seen == (1u << WANTED) - 1 ? count : -ENOENT;
}

int tailor_usdt_find(int fd, struct tailor_usdt ret_places[TAILOR_USDT_MAX])
{
	const Elf64_Shdr *notes, *base;
	cleanup_free char *content = NULL;
	struct elf elf;
	int result = open_elf(fd, &elf);

	if (result == 0) {
		notes = find_section(&elf, ".note.stapsdt");
		base = find_section(&elf, ".stapsdt.base");
		result = notes && base ? read_whole(fd, notes->sh_offset, notes->sh_size, NOTES_BYTES_MAX, &content) : -ENOENT;
		if (result == 0)
			result = take_notes(&elf, content, notes->sh_size, base->sh_addr, ret_places);
	}
	close_elf(&elf);
	return result;
}
