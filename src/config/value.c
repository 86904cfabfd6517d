/* SPDX-License-Identifier: Apache-2.0 */
#include "config/value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/units.h"

#define SIZE_TEXT_BYTES 32

void take_duration(struct validation *validation, const char *path, const char *text, const struct duration_bounds *bounds, uint64_t *value)
{
	uint64_t ns = UINT64_MAX;
	int error;

	if (!text)
		return;
	error = tailor_parse_duration(text, &ns);
	if (bounds->zero && strcmp(text, "0") == 0)
		*value = 0;
	else if (error && error != -ERANGE)
		complain(validation, path, "%s: \"%s\" is not a duration; write a number with a unit, like 250us, 5ms or 2s", path, text);
	else if (ns < bounds->min_ns && !(bounds->zero && ns == 0))
		complain(validation, path, "%s: \"%s\" is too short; at least %s%s", path, text, bounds->min, bounds->zero ? ", or 0 for none" : "");
	else if (ns > bounds->max_ns)
		complain(validation, path, "%s: \"%s\" is too long; at most %s", path, text, bounds->max);
	else
		*value = ns;
}

void take_size(struct validation *validation, const char *path, const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	uint64_t bytes = UINT64_MAX;
	char least[SIZE_TEXT_BYTES], most[SIZE_TEXT_BYTES];
	int error;

	if (!text)
		return;
	error = tailor_parse_size(text, &bytes);
	if (error && error != -ERANGE)
		complain(validation, path, "%s: \"%s\" is not a size; write a number with a unit, like 64KiB or 256MiB", path, text);
	else if (bytes < min || bytes > max)
		complain(validation, path, "%s: \"%s\" is out of range; from %s to %s", path, text,
		         tailor_format_size(least, sizeof(least), min), tailor_format_size(most, sizeof(most), max));
	else
		*value = bytes;
}

void take_number(struct validation *validation, const char *path, const char *text, uint32_t min, uint32_t max, uint32_t *value)
{
	uint64_t number;
	int error;

	if (!text)
		return;
	error = tailor_parse_number(text, min, max, &number);
	if (error == -ERANGE)
		complain(validation, path, "%s: %s is out of range; from %u to %u", path, text, min, max);
	else if (error)
		complain(validation, path, "%s: \"%s\" is not a whole number from %u to %u", path, text, min, max);
	else
		*value = (uint32_t)number;
}

void take_part(struct validation *validation, const char *path, const char *text, double *value)
{
	size_t digits, decimals = 0;
	double percent;

	if (!text)
		return;
	digits = strspn(text, "0123456789");
	if (text[digits] == '.')
		decimals = strspn(text + digits + 1, "0123456789");
	percent = strtod(text, NULL);
	if (!digits || (text[digits] == '.' && !decimals) || strcmp(text + digits + (decimals ? decimals + 1 : 0), "%") != 0)
		complain(validation, path, "%s: \"%s\" is not a percentage; write a number with its sign, like 10%%", path, text);
	else if (percent > 100)
		complain(validation, path, "%s: \"%s\" is too much; at most 100%%", path, text);
	else
		*value = percent / 100;
}

void take_flag(struct validation *validation, const char *path, const char *text, bool *value)
{
	if (!text)
		return;
	if (strcmp(text, "true") == 0)
		*value = true;
	else if (strcmp(text, "false") == 0)
		*value = false;
	else
		complain(validation, path, "%s: \"%s\" is not true or false", path, text);
}

void take_path(struct validation *validation, const char *path, const char *text, size_t max, char *value)
{
	if (!text)
		return;
	if (!text[0])
		complain(validation, path, "%s: is empty; name a path", path);
	else if (strlen(text) >= max)
		complain(validation, path, "%s: the path is %zu bytes long, the system allows %zu; choose a shorter one", path,
		         strlen(text), max - 1);
	else
		memcpy(value, text, strlen(text) + 1);
}

/* An address to listen on or connect to. */
void take_address(struct validation *validation, const char *path, const char *text, bool allow_unix, bool allow_port_0,
                         struct tailor_address *value)
{
	int error;

	if (!text)
		return;
	error = tailor_address_parse(text, value);
	if (error == -ENAMETOOLONG)
		complain(validation, path, "%s: the socket path is longer than the %zu bytes the system allows; choose a shorter one",
		         path, sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
	else if (error || (!allow_unix && value->storage.ss_family == AF_UNIX))
		complain(validation, path, "%s: \"%s\" is not an address; write a numeric one with a port, like 127.0.0.1:9200%s", path,
		         text, allow_unix ? ", or unix:PATH" : "");
	else if (!allow_port_0 && value->storage.ss_family != AF_UNIX && tailor_address_port(value) == 0)
		complain(validation, path, "%s: \"%s\" has port 0; name the server's port", path, text);
}
