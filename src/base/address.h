/* SPDX-License-Identifier: Apache-2.0 */
/* Numeric socket addresses as written in configs: "127.0.0.1:8080", "[::1]:8080", "unix:PATH". */
#ifndef TAILOR_BASE_ADDRESS_H
#define TAILOR_BASE_ADDRESS_H

#include <stdint.h>
#include <sys/socket.h>

struct tailor_address {
	struct sockaddr_storage storage;
	socklen_t length;
};

/*
 * Parses an address; a name is not looked up. Port 0 is accepted (listeners: the kernel chooses).
 * Returns 0, -EINVAL (malformed), or -ENAMETOOLONG (Unix path longer than sun_path allows).
 */
int tailor_address_parse(const char *text, struct tailor_address *ret_address);

#define TAILOR_ADDRESS_TEXT_BYTES 128
/* Writes the address in the form tailor_address_parse() reads and returns buffer. */
char *tailor_address_format(char buffer[TAILOR_ADDRESS_TEXT_BYTES], const struct tailor_address *address);

/* TCP port in host order; 0 for a Unix address. */
uint16_t tailor_address_port(const struct tailor_address *address);

/* The IP as 16 bytes in network order, IPv4 as ::ffff:a.b.c.d (the form of struct tailor_tag). */
void tailor_address_ip(const struct tailor_address *address, uint8_t ret_ip[16]);

/* 1 if both are the same address and port, or Unix path. */
int tailor_address_is_same(const struct tailor_address *one, const struct tailor_address *other);

/* 1 for 127.0.0.0/8, ::1 and Unix addresses. */
int tailor_address_is_local(const struct tailor_address *address);

#endif /* TAILOR_BASE_ADDRESS_H */
