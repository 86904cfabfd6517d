/* SPDX-License-Identifier: Apache-2.0 */
#include "base/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "base/units.h"

static int parse_unix(const char *path, struct tailor_address *ret_address)
{
	struct sockaddr_un *unix_address = (struct sockaddr_un *)&ret_address->storage;
	size_t length = strlen(path);

	if (length == 0)
		return -EINVAL;
	if (length >= sizeof(unix_address->sun_path))
		return -ENAMETOOLONG;
	unix_address->sun_family = AF_UNIX;
	memcpy(unix_address->sun_path, path, length + 1);
	ret_address->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
	return 0;
}

int tailor_address_parse(const char *text, struct tailor_address *ret_address)
{
	struct sockaddr_in *ip4 = (struct sockaddr_in *)&ret_address->storage;
	struct sockaddr_in6 *ip6 = (struct sockaddr_in6 *)&ret_address->storage;
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN];
	uint64_t port;
	size_t length;

	memset(ret_address, 0, sizeof(*ret_address));
	if (strncmp(text, "unix:", 5) == 0)
		return parse_unix(text + 5, ret_address);
	if (!colon || tailor_parse_number(colon + 1, 0, 65535, &port) != 0)
		return -EINVAL;
	length = (size_t)(colon - text);
	if (text[0] == '[' && length >= 2 && text[length - 1] == ']') {
		text++;
		length -= 2;
		if (length >= sizeof(host))
			return -EINVAL;
		memcpy(host, text, length);
		host[length] = '\0';
		if (inet_pton(AF_INET6, host, &ip6->sin6_addr) != 1)
			return -EINVAL;
		ip6->sin6_family = AF_INET6;
		ip6->sin6_port = htons((uint16_t)port);
		ret_address->length = sizeof(*ip6);
		return 0;
	}
	if (length >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, length);
	host[length] = '\0';
	if (inet_pton(AF_INET, host, &ip4->sin_addr) != 1)
		return -EINVAL;
	ip4->sin_family = AF_INET;
	ip4->sin_port = htons((uint16_t)port);
	ret_address->length = sizeof(*ip4);
	return 0;
}

char *tailor_address_format(char buffer[TAILOR_ADDRESS_TEXT_BYTES], const struct tailor_address *address)
{
	const struct sockaddr_in *ip4 = (const struct sockaddr_in *)&address->storage;
	const struct sockaddr_in6 *ip6 = (const struct sockaddr_in6 *)&address->storage;
	const struct sockaddr_un *unix_address = (const struct sockaddr_un *)&address->storage;
	char host[INET6_ADDRSTRLEN];

	switch (address->storage.ss_family) {
	case AF_INET:
		inet_ntop(AF_INET, &ip4->sin_addr, host, sizeof(host));
		snprintf(buffer, TAILOR_ADDRESS_TEXT_BYTES, "%s:%u", host, ntohs(ip4->sin_port));
		break;
	case AF_INET6:
		inet_ntop(AF_INET6, &ip6->sin6_addr, host, sizeof(host));
		snprintf(buffer, TAILOR_ADDRESS_TEXT_BYTES, "[%s]:%u", host, ntohs(ip6->sin6_port));
		break;
	case AF_UNIX: snprintf(buffer, TAILOR_ADDRESS_TEXT_BYTES, "unix:%s", unix_address->sun_path); break;
	default: snprintf(buffer, TAILOR_ADDRESS_TEXT_BYTES, "(none)"); break;
	}
	return buffer;
}

uint16_t tailor_address_port(const struct tailor_address *address)
{
	switch (address->storage.ss_family) {
	case AF_INET: return ntohs(((const struct sockaddr_in *)&address->storage)->sin_port);
	case AF_INET6: return ntohs(((const struct sockaddr_in6 *)&address->storage)->sin6_port);
	default: return 0;
	}
}

void tailor_address_ip(const struct tailor_address *address, uint8_t ret_ip[16])
{
	memset(ret_ip, 0, 16);
	if (address->storage.ss_family == AF_INET) {
		ret_ip[10] = ret_ip[11] = 0xff;
		memcpy(ret_ip + 12, &((const struct sockaddr_in *)&address->storage)->sin_addr, 4);
	} else if (address->storage.ss_family == AF_INET6) {
		memcpy(ret_ip, &((const struct sockaddr_in6 *)&address->storage)->sin6_addr, 16);
	}
}

int tailor_address_is_local(const struct tailor_address *address)
{
	uint8_t ip[16];

	if (address->storage.ss_family == AF_UNIX)
		return 1;
	tailor_address_ip(address, ip);
	if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)ip))
		return ip[12] == 127;
	return IN6_IS_ADDR_LOOPBACK((const struct in6_addr *)(const void *)ip);
}

int tailor_address_is_same(const struct tailor_address *one, const struct tailor_address *other)
{
	uint8_t ip[16], other_ip[16];

	if (one->storage.ss_family != other->storage.ss_family)
		return 0;
	if (one->storage.ss_family == AF_UNIX)
		return strcmp(((const struct sockaddr_un *)&one->storage)->sun_path, ((const struct sockaddr_un *)&other->storage)->sun_path) == 0;
	tailor_address_ip(one, ip);
	tailor_address_ip(other, other_ip);
	return memcmp(ip, other_ip, sizeof(ip)) == 0 && tailor_address_port(one) == tailor_address_port(other);
}
