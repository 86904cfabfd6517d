/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "cli/doctor.h"

const char *doctor_standing_name(enum standing standing)
{
	switch (standing) {
	case STANDING_GOOD: return "ok";
	case STANDING_MISSING_OPTIONAL: return "limited";
	case STANDING_MISSING: return "missing";
	case STANDING_INFORMATION: return "info";
	}
	return "unknown";
}

void doctor_add(struct findings *findings, enum standing standing, const char *what, const char *format, ...)
{
	struct finding *finding;
	va_list arguments;

	if (findings->count == FINDINGS_MAX)
		return;
	finding = &findings->list[findings->count++];
	finding->standing = standing;
	snprintf(finding->what, sizeof(finding->what), "%s", what);
	va_start(arguments, format);
	vsnprintf(finding->text, sizeof(finding->text), format, arguments);
	va_end(arguments);
}
