/* SPDX-License-Identifier: Apache-2.0 */
/* The table of conformance cases as the C tests read it. The format is described in cases/README.md. */
#ifndef TAILOR_TESTS_CONFORMANCE_CASES_H
#define TAILOR_TESTS_CONFORMANCE_CASES_H

#include <stdbool.h>
#include <stddef.h>

struct bytes {
	char *data;
	size_t length;
};

struct conformance_case {
	char name[160];
	char section[64];
	char verdict[64];
	const char *file;
	unsigned int line;
	struct bytes client; /* what the client sends */
	struct bytes server; /* what the server answers; length 0: a case of requests */
	bool server_ends;    /* and then closes */
	bool drips;          /* a time limit is part of it: the parser alone cannot say */
};

struct conformance_table {
	struct conformance_case *cases;
	size_t count;
};

/*
 * Reads all files *.cases in `directory`, in the order of their names. Ends the program with a message and 1 when one
 * cannot be read. Free with conformance_table_free().
 */
void conformance_table_read(const char *directory, struct conformance_table *ret_table);
void conformance_table_free(struct conformance_table *table);

#endif /* TAILOR_TESTS_CONFORMANCE_CASES_H */
