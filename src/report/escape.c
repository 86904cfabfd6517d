/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "report/report.h"

/* Decodes one character (RFC 3629: no overlong forms, no surrogates). Returns its length, 0 when the bytes are not
 * UTF-8. */
static size_t decode(const unsigned char *text, uint32_t *ret_character)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	uint32_t character = text[0];
	size_t length;

	if (character < 0x80) {
		*ret_character = character;
		return 1;
	}
	length = character >= 0xf0 && character < 0xf8 ? 4 : character >= 0xe0 ? 3 : 2;
	if (character < 0xc0 || character >= 0xf8)
		return 0;
	character &= 0x7fU >> length;
	for (size_t i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		character = character << 6 | (text[i] & 0x3fU);
	}
	if (character < smallest[length] || character > 0x10ffff || (character >= 0xd800 && character < 0xe000))
		return 0;
	*ret_character = character;
	return length;
}

static int is_printable(uint32_t character)
{
	if (character < 0x20 || (character >= 0x7f && character < 0xa0))
		return 0;
	/* Separators, and what changes the direction of the text around it. */
	if ((character >= 0x2028 && character <= 0x202e) || (character >= 0x2066 && character <= 0x2069) ||
	    character == 0x200e || character == 0x200f || character == 0x061c || character == 0xfeff)
		return 0;
	return 1;
}

/* Two for what terminals show twice as wide as a letter: East Asian Width W and F (Unicode Annex 11), by its blocks. */
static size_t columns_of(uint32_t character)
{
	static const struct {
		uint32_t first, last;
	} wide[] = {{0x1100, 0x115f},   {0x231a, 0x231b},   {0x23e9, 0x23f3},  {0x25fd, 0x25fe},  {0x2614, 0x27bf},
	            {0x2b1b, 0x2b55},   {0x2e80, 0xa4cf},   {0xa960, 0xa97f},  {0xac00, 0xd7a3},  {0xf900, 0xfaff},
	            {0xfe10, 0xfe6f},   {0xff01, 0xff60},   {0xffe0, 0xffe6},  {0x16fe0, 0x1b2ff}, {0x1f004, 0x1faff},
	            {0x20000, 0x3fffd}};

	for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++) {
		if (character >= wide[i].first && character <= wide[i].last)
			return 2;
	}
	return 1;
}

size_t tailor_report_character(const char *text, size_t *ret_columns)
{
	uint32_t character = 0;
	size_t length = decode((const unsigned char *)text, &character);

	*ret_columns = columns_of(character);
	return length ? length : 1;
}

size_t tailor_report_printable(char *buffer, size_t size, const char *text, size_t columns)
{
	static const char hex[] = "0123456789abcdef";
	const unsigned char *from = (const unsigned char *)text;
	size_t used = 0, width = 0, cut = 0, cut_width = 0;

	while (*from) {
		uint32_t character = 0;
		size_t length = decode(from, &character);
		int plain = length > 0 && is_printable(character);
		size_t bytes = plain ? length : 4, takes = plain ? columns_of(character) : 4;

		if (width + takes > columns || used + bytes + 1 > size)
			break;
		if (plain) {
			memcpy(buffer + used, from, length);
			from += length;
		} else {
			/* One byte at a time, also of a character that is valid but not printable. */
			buffer[used] = '\\';
			buffer[used + 1] = 'x';
			buffer[used + 2] = hex[*from >> 4];
			buffer[used + 3] = hex[*from & 15];
			from++;
		}
		used += bytes;
		width += takes;
		if (width + 3 <= columns && used + 4 <= size) {
			cut = used;
			cut_width = width;
		}
	}
	if (*from && columns >= 3 && size >= 4) {
		memcpy(buffer + cut, "...", 3);
		used = cut + 3;
		width = cut_width + 3;
	}
	if (size > 0)
		buffer[used] = '\0';
	return width;
}

char *tailor_report_utf8(char *buffer, size_t size, const char *text)
{
	const unsigned char *from = (const unsigned char *)text;
	size_t used = 0;

	while (*from) {
		uint32_t character;
		size_t length = decode(from, &character);
		size_t bytes = length ? length : 3;

		if (used + bytes + 1 > size)
			break;
		memcpy(buffer + used, length ? (const char *)from : "\xef\xbf\xbd", bytes);
		from += length ? length : 1;
		used += bytes;
	}
	buffer[used] = '\0';
	return buffer;
}
