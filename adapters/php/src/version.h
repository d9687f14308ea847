/*
 * A version: which bytes of which file, without reading them.
 *
 * Two looks at a file that give equal versions looked at equal bytes, under the conditions that snapshot.c keeps: the
 * kernel moves the time of the last change (st_ctime), which no program can set, whenever the bytes, the owner or the
 * rights of a file change.
 */
#ifndef BATON_VERSION_H
#define BATON_VERSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

typedef struct {
	uint64_t device;
	uint64_t inode;
	uint64_t size; /* bytes */
	int64_t changed_s;
	int64_t changed_ns;
} baton_version;

/* Hexadecimal digits and hyphens of baton_version_name(), with the NUL. */
#define BATON_VERSION_NAME_SIZE (16 * 5 + 4 + 1)

baton_version baton_version_of(const struct stat *status);
bool baton_version_equal(const baton_version *a, const baton_version *b);

/* A file name that no other version has. */
void baton_version_name(const baton_version *version, char name[BATON_VERSION_NAME_SIZE]);

/* Whether a change from `now` on is sure to give another time of change. */
bool baton_version_is_settled(const baton_version *version, time_t now, time_t seconds);

#endif
