/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scope-bound release for descriptors and heap memory:
 *
 *   cleanup_close int fd = open(...);
 *   cleanup_free char *name = strdup(...);
 *   ...
 *   *ret_fd = take_fd(&fd);   // hands it out; the scope no longer closes it
 */
#ifndef TAILOR_BASE_CLEANUP_H
#define TAILOR_BASE_CLEANUP_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Closes *fd if it is one, and keeps errno. */
static inline void tailor_cleanup_close(int *fd)
{
	if (*fd >= 0) {
		int saved = errno;

		close(*fd);
		errno = saved;
	}
}

static inline void tailor_cleanup_free(void *pointer)
{
	free(*(void **)pointer);
}

static inline void tailor_cleanup_fclose(FILE **file)
{
	if (*file)
		fclose(*file);
}

#define cleanup_close __attribute__((cleanup(tailor_cleanup_close)))
#define cleanup_free __attribute__((cleanup(tailor_cleanup_free)))
#define cleanup_fclose __attribute__((cleanup(tailor_cleanup_fclose)))

/* Returns the descriptor and leaves -1 behind: ownership moves to the caller. */
static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

/* Returns the pointer and leaves NULL behind: ownership moves to the caller. */
#define take_pointer(pointer)                                                                       \
	({                                                                                          \
		__typeof__(pointer) taken_ = (pointer);                                             \
		(pointer) = NULL;                                                                   \
		taken_;                                                                             \
	})

#endif /* TAILOR_BASE_CLEANUP_H */
