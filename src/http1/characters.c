/* SPDX-License-Identifier: Apache-2.0 */
#include "http1/characters.h"

#define T HTTP1_IS_TOKEN
#define V HTTP1_IS_VALUE
#define G HTTP1_IS_TARGET
#define H HTTP1_IS_HOST

/*
 * A target goes on byte for byte, so that it may hold any printable ASCII: browsers and query languages leave more
 * unescaped than RFC 3986 allows, and the server behind judges it. Not '#': what follows it is a fragment to one
 * reader and a part of the target to another.
 */
const uint8_t http1_classes[256] = {
	['\t'] = V,
	[' '] = V,
	['!'] = T | V | G | H,
	['"'] = V | G,
	['#'] = T | V,
	['$'] = T | V | G | H,
	['%'] = T | V | G,
	['&' ... '\''] = T | V | G | H,
	['(' ... ')'] = V | G | H,
	['*' ... '+'] = T | V | G | H,
	[','] = V | G | H,
	['-' ... '.'] = T | V | G | H,
	['/'] = V | G,
	['0' ... '9'] = T | V | G | H,
	[':'] = V | G,
	[';'] = V | G | H,
	['<'] = V | G,
	['='] = V | G | H,
	['>' ... '@'] = V | G,
	['A' ... 'Z'] = T | V | G | H,
	['[' ... ']'] = V | G,
	['^'] = T | V | G,
	['_'] = T | V | G | H,
	['`'] = T | V | G,
	['a' ... 'z'] = T | V | G | H,
	['{'] = V | G,
	['|'] = T | V | G,
	['}'] = V | G,
	['~'] = T | V | G | H,
	[0x80 ... 0xff] = V, /* obs-text */
};
