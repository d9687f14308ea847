/* Snapshots of files: see snapshot.h. */
#include "snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef XFS_SUPER_MAGIC
# define XFS_SUPER_MAGIC 0x58465342
#endif

/* The coarsest clock among the file systems below: ext4 with small inodes keeps whole seconds. */
#define CLOCK_COARSENESS_S 1

/* A snapshot must not push all others out. */
#define SHARE_OF_STORE_MAX 4

/*
 * File systems of this machine alone, whose time of change moves with every change. NFS and FUSE ask others.
 * `writes_back`: it does so for stores to mapped pages, too, once fdatasync(2) has made the pages clean.
 */
static bool keeps_versions(int file, bool *writes_back)
{
	struct statfs status;

	if (fstatfs(file, &status) != 0) {
		return false;
	}
	/* In memory no page ever gets clean, and an overlay may lie over memory. */
	*writes_back = status.f_type != TMPFS_MAGIC && status.f_type != OVERLAYFS_SUPER_MAGIC;
	switch (status.f_type) {
		case EXT4_SUPER_MAGIC: /* ext2 and ext3, too */
		case XFS_SUPER_MAGIC:
		case BTRFS_SUPER_MAGIC:
		case F2FS_SUPER_MAGIC:
		case OVERLAYFS_SUPER_MAGIC:
		case TMPFS_MAGIC:
			return true;
		default:
			return false;
	}
}

typedef enum { LEASED, WRITER_EXISTS, NO_LEASE } lease_result;

typedef struct {
	lease_result result;
	sigset_t mask_before;
} lease;

static void sigio_only(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGIO);
}

/* SIGIO reports a waiting writer to the holder of a lease, and kills processes without a handler: it is blocked. */
static void lease_take(lease *taken, int file)
{
	sigset_t sigio;

	sigio_only(&sigio);
	pthread_sigmask(SIG_BLOCK, &sigio, &taken->mask_before);
	if (fcntl(file, F_SETLEASE, F_RDLCK) == 0) {
		taken->result = LEASED;
	} else {
		taken->result = errno == EAGAIN ? WRITER_EXISTS : NO_LEASE;
	}
}

static void lease_give_back(lease *taken, int file)
{
	sigset_t sigio;

	if (taken->result == LEASED) {
		fcntl(file, F_SETLEASE, F_UNLCK);
	}
	sigio_only(&sigio);
	if (!sigismember(&taken->mask_before, SIGIO)) {
		while (sigtimedwait(&sigio, NULL, &(struct timespec) {0}) > 0) {
		}
	}
	pthread_sigmask(SIG_SETMASK, &taken->mask_before, NULL);
}

static bool is_still(int file, const baton_version *version)
{
	struct stat status;

	if (fstat(file, &status) != 0) {
		return false;
	}
	baton_version now = baton_version_of(&status);
	return baton_version_equal(version, &now);
}

/* Outcome for an errno of writing to the store. */
static baton_outcome why_not_stored(void)
{
	return errno == ENOSPC || errno == EDQUOT ? BATON_NO_ROOM : BATON_SYSTEM_ERROR;
}

static baton_outcome copy(int file, int draft, uint64_t size)
{
	off_t position = 0;

	while ((uint64_t) position < size) {
		ssize_t moved = sendfile(draft, file, &position, size - (uint64_t) position);
		if (moved == 0) {
			return BATON_JUST_CHANGED;
		}
		if (moved < 0 && errno != EINTR) {
			return why_not_stored();
		}
	}
	return BATON_MAPPED;
}

/* Fills the draft by the first way of snapshot.h that is open. */
static baton_outcome fill(int file, int draft, const baton_version *version, time_t settle_s, bool writes_back)
{
	lease lease;
	baton_outcome outcome;

	lease_take(&lease, file);
	if (lease.result == WRITER_EXISTS) {
		outcome = BATON_BEING_WRITTEN;
	} else if (!is_still(file, version)) {
		outcome = BATON_JUST_CHANGED;
	} else if (ioctl(draft, FICLONE, file) == 0) {
		outcome = BATON_MAPPED;
	} else if (lease.result == LEASED) {
		outcome = copy(file, draft, version->size);
	} else if (!writes_back || settle_s <= 0 || !baton_version_is_settled(version, time(NULL), settle_s)) {
		outcome = BATON_NOT_OUR_FILE;
	} else if (fdatasync(file) != 0) {
		outcome = BATON_SYSTEM_ERROR;
	} else if (!is_still(file, version)) {
		outcome = BATON_JUST_CHANGED;
	} else {
		outcome = copy(file, draft, version->size);
	}
	if (outcome == BATON_MAPPED && !is_still(file, version)) {
		outcome = BATON_JUST_CHANGED;
	}
	lease_give_back(&lease, file);
	return outcome;
}

static baton_outcome make(const baton_store *store, const baton_snapshot_rules *rules, int file,
	const baton_version *version, const char *name, bool writes_back)
{
	baton_draft draft;

	if (!baton_version_is_settled(version, time(NULL), CLOCK_COARSENESS_S)) {
		return BATON_JUST_CHANGED;
	}
	if (version->size > rules->limits.bytes_max / SHARE_OF_STORE_MAX) {
		return BATON_TOO_LARGE;
	}
	if (!baton_store_make_room(store, version->size, &rules->limits)) {
		return BATON_NO_ROOM;
	}
	if (!baton_store_begin(store, &draft)) {
		return why_not_stored();
	}
	baton_outcome outcome = fill(file, draft.fd, version, rules->settle_s, writes_back);
	if (outcome != BATON_MAPPED) {
		baton_store_abandon(store, &draft);
	} else if (!baton_store_publish(store, &draft, name)) {
		outcome = why_not_stored();
	}
	return outcome;
}

baton_outcome baton_snapshot_take(const baton_store *store, const baton_snapshot_rules *rules, int file,
	baton_version *version, int *snapshot)
{
	char name[BATON_VERSION_NAME_SIZE];
	struct stat status;
	bool writes_back;

	if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
		return BATON_SYSTEM_ERROR;
	}
	*version = baton_version_of(&status);
	if (!keeps_versions(file, &writes_back)) {
		return BATON_FILE_SYSTEM_UNKNOWN;
	}
	/* Naming must not widen access to a file: every process that knows its name can read the snapshot. */
	if (!(status.st_mode & S_IROTH)) {
		return BATON_NOT_WORLD_READABLE;
	}

	baton_version_name(version, name);
	*snapshot = baton_store_find(store, name, version->size);
	if (*snapshot >= 0) {
		return BATON_MAPPED;
	}
	baton_outcome outcome = make(store, rules, file, version, name, writes_back);
	if (outcome == BATON_MAPPED) {
		*snapshot = baton_store_find(store, name, version->size);
		if (*snapshot < 0) {
			outcome = BATON_SYSTEM_ERROR;
		}
	}
	return outcome;
}
