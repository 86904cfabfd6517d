/* SPDX-License-Identifier: Apache-2.0 */
#include "base/printable.h"

#include <stdint.h>

char *tailor_printable_line(char *text)
{
	for (uint8_t *at = (uint8_t *)text; *at; at++) {
		/* U+0080 to U+009F are c2 80 to c2 9f; some terminals take U+009B for the start of a command. */
		if (*at < 0x20 || *at == 0x7f || (*at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0))
			*at = '?';
	}
	return text;
}
