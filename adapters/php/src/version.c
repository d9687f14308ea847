/* Versions of files: see version.h. */
#include "version.h"

#include <inttypes.h>
#include <stdio.h>

baton_version baton_version_of(const struct stat *status)
{
	return (baton_version) {
		.device = status->st_dev,
		.inode = status->st_ino,
		.size = (uint64_t) status->st_size,
		.changed_s = status->st_ctim.tv_sec,
		.changed_ns = status->st_ctim.tv_nsec,
	};
}

bool baton_version_equal(const baton_version *a, const baton_version *b)
{
	/* The time of change first: it is what differs. */
	return a->changed_ns == b->changed_ns && a->changed_s == b->changed_s && a->inode == b->inode
		&& a->device == b->device && a->size == b->size;
}

void baton_version_name(const baton_version *version, char name[BATON_VERSION_NAME_SIZE])
{
	snprintf(name, BATON_VERSION_NAME_SIZE, "%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64,
		version->device, version->inode, version->size, (uint64_t) version->changed_s,
		(uint64_t) version->changed_ns);
}

bool baton_version_is_settled(const baton_version *version, time_t now, time_t seconds)
{
	/* `>` and not `>=`: both times are cut to whole seconds. A clock that was set back makes this false, not true. */
	return now > version->changed_s && now - version->changed_s > seconds;
}
