/* SPDX-License-Identifier: Apache-2.0 */
/* Inside `tailor doctor`: what it finds. */
#ifndef TAILOR_CLI_DOCTOR_H
#define TAILOR_CLI_DOCTOR_H

#include <stddef.h>

#define FINDINGS_MAX 128

/* How one thing stands. */
enum standing {
	STANDING_GOOD,
	STANDING_MISSING_OPTIONAL, /* detail is lost */
	STANDING_MISSING,          /* a feature is lost */
	STANDING_INFORMATION,
};

/* As it is printed. */
const char *doctor_standing_name(enum standing standing);

struct finding {
	enum standing standing;
	char what[48];
	char text[224];
};

struct findings {
	size_t count;
	struct finding list[FINDINGS_MAX];
};

/* Adds one; what is too long is cut, and beyond FINDINGS_MAX there are none. */
__attribute__((format(printf, 4, 5))) void doctor_add(struct findings *findings, enum standing standing, const char *what, const char *format,
                                                      ...);

/*
 * What a running proxy has lost, by the configuration it was started with. Returns 0, or a negative errno when the configuration cannot be
 * read, after lines about it on stderr.
 */
int doctor_look_at_proxy(struct findings *findings, const char *config_path);

#endif /* TAILOR_CLI_DOCTOR_H */
