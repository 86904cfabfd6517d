/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign text in messages to people. */
#ifndef TAILOR_BASE_PRINTABLE_H
#define TAILOR_BASE_PRINTABLE_H

/*
 * Makes terminated text one line that moves no terminal's cursor: every control character, those of ASCII and the C1 set
 * as UTF-8 has it, becomes '?'. In place, never longer. Returns text. Any thread.
 */
char *tailor_printable_line(char *text);

#endif /* TAILOR_BASE_PRINTABLE_H */
