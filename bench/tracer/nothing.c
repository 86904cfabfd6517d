/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the programs that do nothing attached until it is ended. */
#include <stdio.h>
#include <unistd.h>

#include <nothing.skel.h>

int main(void)
{
	struct nothing *programs = nothing__open_and_load();

	if (!programs || nothing__attach(programs)) {
		perror("bench_nothing: cannot attach");
		return 1;
	}
	puts("attached");
	fflush(stdout);
	return pause() ? 0 : 1;
}
