/* SPDX-License-Identifier: Apache-2.0 */
#include "self.h"

#include <pthread.h>
#include <stdlib.h>

#include "events.h"

/* A key rather than __thread: see class_events.c. */
static pthread_key_t key;
static int have_key;

int self_open(void)
{
	int error = pthread_key_create(&key, free);

	have_key = error == 0;
	return -error;
}

struct self *self(void)
{
	struct self *own;

	if (!have_key)
		return NULL;
	own = pthread_getspecific(key);
	if (own)
		return own;
	own = calloc(1, sizeof(*own));
	if (!own)
		return NULL;
	own->tid = own_tid();
	if (pthread_setspecific(key, own) != 0) {
		free(own);
		return NULL;
	}
	return own;
}

uint32_t self_tid(const struct self *self)
{
	return self ? self->tid : own_tid();
}
