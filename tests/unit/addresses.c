/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/addresses.h"

#define ADDRESSES 300
#define CONNECTIONS 128

static void an_ip(uint8_t ip[16], unsigned int number)
{
	memset(ip, 0, 16);
	if (number % 2) {
		ip[10] = ip[11] = 0xff;
		ip[15] = (uint8_t)(number / 2);
	} else {
		ip[0] = 0x20;
		ip[1] = (uint8_t)number;
		ip[7] = (uint8_t)(number >> 8);
	}
}

static void each_address_has_what_it_may_have_whatever_comes_and_goes(void **state)
{
	unsigned int counted[ADDRESSES] = {0}, held[CONNECTIONS], now = 0, refused = 0;
	struct addresses *addresses;
	uint8_t ip[16];

	(void)state;
	srand(1);
	assert_int_equal(addresses_open(CONNECTIONS, 3, &addresses), 0);
	for (int i = 0; i < 200000; i++) {
		/* As many as the table was made for, and about as many addresses as connections, then few of them. */
		if (now < CONNECTIONS && rand() % 5 < 3) {
			unsigned int number = (unsigned int)rand() % (i < 100000 ? ADDRESSES : 20);
			bool entered;

			an_ip(ip, number);
			entered = addresses_enter(addresses, ip);
			assert_int_equal(entered, counted[number] < 3);
			if (entered) {
				counted[number]++;
				held[now++] = number;
			}
			refused += !entered;
		} else if (now > 0) {
			unsigned int index = (unsigned int)rand() % now;

			an_ip(ip, held[index]);
			addresses_leave(addresses, ip);
			counted[held[index]]--;
			held[index] = held[--now];
		}
	}
	assert_true(refused > 1000);
	while (now > 0) {
		an_ip(ip, held[--now]);
		addresses_leave(addresses, ip);
	}
	for (unsigned int i = 0; i < ADDRESSES; i++) {
		an_ip(ip, i);
		assert_true(addresses_enter(addresses, ip));
		addresses_leave(addresses, ip);
	}
	addresses_close(addresses);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_address_has_what_it_may_have_whatever_comes_and_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
