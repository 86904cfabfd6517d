/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds a target with the files of the directories named on the command line: its corpus, without libFuzzer. */
#include "fuzz.h"

#include <dirent.h>

#define INPUT_BYTES_MAX (1 << 20)
/* Of one input, sanitizers and a busy machine included: what takes longer is a finding. */
#define SECONDS_MAX 20

static void replay_file(const char *path)
{
	FILE *file = fopen(path, "re");
	uint8_t *bytes = malloc(INPUT_BYTES_MAX), *exact;
	size_t size;

	require(file && bytes);
	size = fread(bytes, 1, INPUT_BYTES_MAX, file);
	require(!ferror(file) && size < INPUT_BYTES_MAX);
	fclose(file);
	/* A block of exactly that size, so that a sanitizer sees a read behind it. */
	exact = malloc(size ? size : 1);
	require(exact);
	memcpy(exact, bytes, size);
	free(bytes);
	alarm(SECONDS_MAX);
	LLVMFuzzerTestOneInput(exact, size);
	alarm(0);
	free(exact);
}

static unsigned int replay_directory(const char *path)
{
	DIR *directory = opendir(path);
	unsigned int count = 0;
	struct dirent *entry;

	require(directory);
	while ((entry = readdir(directory))) {
		char file[4096];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		/* Before, so that a death is told with its input. */
		printf("%s\n", file);
		fflush(stdout);
		replay_file(file);
		count++;
	}
	closedir(directory);
	return count;
}

int main(int argc, char **argv)
{
	unsigned int count = 0;

	for (int i = 1; i < argc; i++)
		count += replay_directory(argv[i]);
	printf("%u inputs\n", count);
	/* Without a corpus nothing is tested. */
	return count > 0 ? 0 : 1;
}
