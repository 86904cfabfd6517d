/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/tag.h"

#include <stddef.h>
#include <string.h>

struct tailor_tag *tag_claim(struct tailor_tag *tags, const struct tailor_address *local, unsigned int server,
                             const struct tailor_address *address)
{
	uint16_t port = tailor_address_port(local);
	struct tailor_tag *tag = &tags[port];
	uint32_t words[4];
	uint16_t server_port = tailor_address_port(address);
	uint16_t free_entry = 0;

	if (port == 0 || server_port == 0)
		return NULL;
	if (!tailor_tag_may_serve(tags, server_port))
		tailor_tag_serves(tags, server_port);
	if (!__atomic_compare_exchange_n(&tag->server_port, &free_entry, server_port, 0, __ATOMIC_ACQ_REL,
	                                 __ATOMIC_RELAXED))
		return NULL;
	/* `request` is 0 until the first tag_store(), so nobody believes the rest before it is filled. */
	tag->server = (uint16_t)server;
	tailor_address_ip(address, tag->address);
	tailor_address_ip(local, (uint8_t *)words);
	tag->proxy = tailor_tag_fold(words);
	return tag;
}
