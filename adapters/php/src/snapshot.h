/*
 * Snapshots: immutable files with the contents that a file has when a script reads it.
 *
 * The server opens a named file after the script has ended, perhaps long after. By then the file may be gone, replaced,
 * shortened, or rewritten in place, and nothing that a PHP worker can hold for so long would prevent it: a lease is
 * broken by the kernel after a while, a hard link still shows what is written, and both end with the process. So what
 * is named is never the file but a snapshot of it, taken once per version and shared by all who read that version.
 *
 * That a snapshot holds the bytes of the version it is named after is ensured, in this order, by
 *   1. a read lease (fcntl(2), F_SETLEASE) while it is taken: the kernel grants it only if no process has the file
 *      open or mapped for writing, and delays writers until it is released. It is granted to the owner of the file.
 *   2. a reflink (FICLONE), which the file system takes atomically, where there are any;
 *   3. if `baton.settle` allows it: a copy of a file that was not changed for that long and is not by the end of it,
 *      after dirty pages were written back, so that stores to a mapping move the time of change again.
 *      This trusts that no write(2) takes that long. It is off by default.
 * And in every case the last change must be more than a second ago: then any later change gives another version,
 * however coarse the clock of the file system is.
 */
#ifndef BATON_SNAPSHOT_H
#define BATON_SNAPSHOT_H

#include "report.h"
#include "store.h"
#include "version.h"

typedef struct {
	baton_store_limits limits;
	time_t settle_s; /* 0: never copy what cannot be leased */
} baton_snapshot_rules;

/*
 * A snapshot of what `file`, open for reading, holds now.
 * BATON_MAPPED: `version` tells which version that is, and `snapshot` is a descriptor to be closed by the caller.
 */
baton_outcome baton_snapshot_take(const baton_store *store, const baton_snapshot_rules *rules, int file,
	baton_version *version, int *snapshot);

#endif
