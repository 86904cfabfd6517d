/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/demo.h"
#include "cli/status_ask.h"

json_t *demo_status(const char *socket_path)
{
	struct tailor_address address;
	char text[TAILOR_ADDRESS_TEXT_BYTES + 8];
	json_t *status;

	snprintf(text, sizeof(text), "unix:%s", socket_path);
	if (tailor_address_parse(text, &address) != 0 || status_ask(&address, &status) != 0)
		return NULL;
	return status;
}
