/* SPDX-License-Identifier: Apache-2.0 */
/* Where a libjvm.so has its probes: files made here as assemblers and linkers make them, and broken ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tailor/event.h>
#include <unistd.h>

#include "collect/kernel_usdt.h"

#define CODE 0x1000 /* of the text in the file */
#define ADDRESS 0x401000
#define FILE_BYTES 0x3000
#define BASE 0x500000

static const char section_names[] = "\0.shstrtab\0.note.stapsdt\0.stapsdt.base";

/* A small library in memory, and where its parts are. */
struct library {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Shdr sections[4];
	char names[sizeof(section_names)];
	char notes[2048];
	size_t notes_bytes;
};

static void add_note(struct library *library, uint64_t place, uint64_t base, const char *provider, const char *name, const char *arguments)
{
	uint64_t words[3] = {place, base, 0};
	size_t strings = strlen(provider) + strlen(name) + strlen(arguments) + 3;
	Elf64_Nhdr note = {.n_namesz = 8, .n_descsz = (uint32_t)(sizeof(words) + strings), .n_type = 3};
	char *to = library->notes + library->notes_bytes;

	memcpy(to, &note, sizeof(note));
	memcpy(to + sizeof(note), "stapsdt", 8);
	to += sizeof(note) + 8;
	memcpy(to, words, sizeof(words));
	to += sizeof(words);
	to = stpcpy(to, provider) + 1;
	to = stpcpy(to, name) + 1;
	strcpy(to, arguments);
	library->notes_bytes += sizeof(note) + 8 + ((sizeof(words) + strings + 3) & ~(size_t)3);
}

static void make(struct library *library, const char *operation_begin, const char *operation_end)
{
	memset(library, 0, sizeof(*library));
	memcpy(library->header.e_ident, ELFMAG, SELFMAG);
	library->header.e_ident[EI_CLASS] = ELFCLASS64;
	library->header.e_machine = EM_X86_64;
	library->header.e_phentsize = sizeof(Elf64_Phdr);
	library->header.e_shentsize = sizeof(Elf64_Shdr);
	library->header.e_phoff = offsetof(struct library, segment);
	library->header.e_shoff = offsetof(struct library, sections);
	library->header.e_phnum = 1;
	library->header.e_shnum = 4;
	library->header.e_shstrndx = 1;
	library->segment = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = CODE, .p_vaddr = ADDRESS, .p_filesz = 0x100};
	memcpy(library->names, section_names, sizeof(section_names));
	library->sections[1] = (Elf64_Shdr){.sh_name = 1, .sh_offset = offsetof(struct library, names), .sh_size = sizeof(section_names)};
	library->sections[2].sh_name = 11;
	library->sections[2].sh_offset = offsetof(struct library, notes);
	library->sections[3] = (Elf64_Shdr){.sh_name = 25, .sh_addr = BASE};
	add_note(library, ADDRESS + 1, BASE, "hs_private", "safepoint__begin", "");
	add_note(library, ADDRESS + 2, BASE, "libc", "unwanted", "8@%rax");
	add_note(library, ADDRESS + 3, BASE, "hs_private", "safepoint__end", "");
	add_note(library, ADDRESS + 4, BASE, "hotspot", "vmops__begin", operation_begin);
	/* As when the library was moved after the note had been written. */
	add_note(library, ADDRESS + 5 + 0x70, BASE + 0x70, "hotspot", "vmops__end", operation_end);
	library->sections[2].sh_size = library->notes_bytes;
}

/* Writes it with its code, all of it `instruction`. */
static int file_of(const struct library *library, unsigned char instruction)
{
	unsigned char code[0x100];
	int fd = memfd_create("libjvm.so", MFD_CLOEXEC);

	memset(code, instruction, sizeof(code));
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, library, sizeof(*library), 0), sizeof(*library));
	assert_int_equal(pwrite(fd, code, sizeof(code), CODE), sizeof(code));
	assert_int_equal(ftruncate(fd, FILE_BYTES), 0);
	return fd;
}

static int find(const struct library *library, struct tailor_usdt *places)
{
	int fd = file_of(library, 0x90), result = tailor_usdt_find(fd, places);

	close(fd);
	return result;
}

/* Register's number + 1, 32: memory, 8 up: displacement; as in bpf/safepoint.bpf.c. */
#define NAME(cookie) ((uint32_t)((cookie) >> 8) & 0xffffff)
#define MODE(cookie) ((uint32_t)((cookie) >> 32) & 0xffffff)

static void all_four_kinds_are_found_where_their_notes_say(void **state)
{
	static const uint8_t kinds[] = {TAILOR_EVENT_SAFEPOINT_BEGIN, TAILOR_EVENT_SAFEPOINT_END, TAILOR_EVENT_VM_OPERATION_BEGIN,
	                                TAILOR_EVENT_VM_OPERATION_END};
	static const uint64_t offsets[] = {CODE + 1, CODE + 3, CODE + 4, CODE + 5};
	struct tailor_usdt places[TAILOR_USDT_MAX];
	struct library library;

	(void)state;
	make(&library, "8@%r12 8@%rdx -4@%eax", "8@%r14 8@%r13 -4@%r11d");
	assert_int_equal(find(&library, places), 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(places[i].cookie & 0xff, kinds[i]);
		assert_int_equal(places[i].offset, offsets[i]);
	}
	assert_int_equal(NAME(places[0].cookie), 0);
	assert_int_equal(NAME(places[2].cookie), 4);
	assert_int_equal(MODE(places[2].cookie), 11);
	assert_int_equal(NAME(places[3].cookie), 2);
	assert_int_equal(MODE(places[3].cookie), 7);
}

static void arguments_in_memory_and_constants_are_read_and_others_are_not_guessed(void **state)
{
	struct tailor_usdt places[TAILOR_USDT_MAX];
	struct library library;

	(void)state;
	make(&library, "8@-144(%rbp) 8@%rdx -4@$1", "8@(%rsp) 8@%rdx 4@24(%rsp)");
	assert_int_equal(find(&library, places), 4);
	assert_int_equal(NAME(places[2].cookie), 5 | 32 | (uint32_t)(uint16_t)-144 << 8);
	assert_int_equal(MODE(places[2].cookie), 31 | 1 << 8);
	assert_int_equal(NAME(places[3].cookie), 20 | 32);
	assert_int_equal(MODE(places[3].cookie), 20 | 32 | 24 << 8);
	/* A scaled index, a name of four bytes, half of a register, a symbol, a displacement that does not fit. */
	make(&library, "8@8(%rax,%rcx,8) 8@%rdx -4@%al", "4@%eax 8@%rdx -4@stack(%rip)");
	assert_int_equal(find(&library, places), 4);
	assert_int_equal(NAME(places[2].cookie) | MODE(places[2].cookie) | NAME(places[3].cookie) | MODE(places[3].cookie), 0);
	make(&library, "8@40000(%rbp) 8@%rdx -4@$70000", "8 8@%rdx -4");
	assert_int_equal(find(&library, places), 4);
	assert_int_equal(NAME(places[2].cookie) | MODE(places[2].cookie) | NAME(places[3].cookie) | MODE(places[3].cookie), 0);
}

static void a_library_that_lacks_one_of_them_has_none(void **state)
{
	struct tailor_usdt places[TAILOR_USDT_MAX];
	struct library library;
	char *name;

	(void)state;
	make(&library, "", "");
	name = memmem(library.notes, library.notes_bytes, "vmops__end", 10);
	assert_non_null(name);
	*name = 'x';
	assert_int_equal(find(&library, places), -ENOENT);
	make(&library, "", "");
	library.sections[2].sh_name = 0; /* stripped */
	assert_int_equal(find(&library, places), -ENOENT);
}

/* A breakpoint on anything but the probe's own instruction could break the JVM. */
static void a_place_that_is_no_nop_or_no_code_is_not_taken(void **state)
{
	struct tailor_usdt places[TAILOR_USDT_MAX];
	struct library library;
	int fd;

	(void)state;
	make(&library, "", "");
	fd = file_of(&library, 0x55);
	assert_int_equal(tailor_usdt_find(fd, places), -ENOENT);
	close(fd);
	library.segment.p_flags = PF_R;
	assert_int_equal(find(&library, places), -ENOENT);
	make(&library, "", "");
	library.segment.p_filesz = 5;
	assert_int_equal(find(&library, places), -ENOENT);
}

static void files_that_are_no_library_are_refused(void **state)
{
	struct tailor_usdt places[TAILOR_USDT_MAX];
	struct library library;
	int fd = memfd_create("empty", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(tailor_usdt_find(fd, places), -ENOEXEC);
	close(fd);
	assert_int_equal(tailor_usdt_find(-1, places), -EBADF);
	make(&library, "", "");
	library.header.e_machine = EM_AARCH64;
	assert_int_equal(find(&library, places), -ENOEXEC);
	make(&library, "", "");
	library.header.e_shstrndx = 4;
	assert_int_equal(find(&library, places), -ENOEXEC);
	make(&library, "", "");
	library.sections[2].sh_size = UINT64_MAX;
	assert_int_equal(find(&library, places), -ENOEXEC);
}

/* Whatever a byte of it is: it answers, and what it finds is a nop of the file. The sanitizers look on. */
static void no_changed_byte_leads_astray(void **state)
{
	struct tailor_usdt places[TAILOR_USDT_MAX];
	struct library library;
	unsigned int seed = 1;
	int fd;

	(void)state;
	make(&library, "8@-144(%rbp) 8@%rdx -4@$1", "8@%r14 8@%r13 -4@%eax");
	fd = file_of(&library, 0x90);
	for (int i = 0; i < 20000; i++) {
		off_t place = rand_r(&seed) % (int)(offsetof(struct library, notes) + library.notes_bytes);
		unsigned char before, after = (unsigned char)rand_r(&seed), instruction;
		int count;

		assert_int_equal(pread(fd, &before, 1, place), 1);
		assert_int_equal(pwrite(fd, &after, 1, place), 1);
		count = tailor_usdt_find(fd, places);
		assert_true(count <= TAILOR_USDT_MAX);
		for (int j = 0; j < count; j++) {
			assert_int_equal(pread(fd, &instruction, 1, (off_t)places[j].offset), 1);
			assert_int_equal(instruction, 0x90);
		}
		assert_int_equal(pwrite(fd, &before, 1, place), 1);
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_four_kinds_are_found_where_their_notes_say),
		cmocka_unit_test(arguments_in_memory_and_constants_are_read_and_others_are_not_guessed),
		cmocka_unit_test(a_library_that_lacks_one_of_them_has_none),
		cmocka_unit_test(a_place_that_is_no_nop_or_no_code_is_not_taken),
		cmocka_unit_test(files_that_are_no_library_are_refused),
		cmocka_unit_test(no_changed_byte_leads_astray),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
