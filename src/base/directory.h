/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TAILOR_BASE_DIRECTORY_H
#define TAILOR_BASE_DIRECTORY_H

/*
 * Whether there is a directory that a file with that path could be made in. Returns 0, -ENOENT, -ENOTDIR, or another negative errno. Any
 * thread.
 */
int tailor_directory_probe(const char *path);

#endif /* TAILOR_BASE_DIRECTORY_H */
