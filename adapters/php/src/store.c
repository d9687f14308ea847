/* The directory of snapshots: see store.h. */
#include "store.h"

#include "php.h"
#include "php_main.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bounds the time that a look through the directory takes: some milliseconds. */
#define SNAPSHOTS_MAX 4096

/* Others may pass through to a name that they were told, but not list the names. */
#define DIRECTORY_MODE 0711

#define DRAFT_PREFIX ".draft-"

void baton_store_init(baton_store *store)
{
	*store = (baton_store) {.directory = -1};
}

void baton_store_close(baton_store *store)
{
	if (store->directory >= 0) {
		close(store->directory);
	}
	free(store->path);
	baton_store_init(store);
}

static void complain(const char *what, const char *path)
{
	char line[PATH_MAX + 256];

	snprintf(line, sizeof line, "baton: %s is of no use as baton.snapshot_dir: %s. Files are sent as plain strings",
		path, what);
	php_log_err(line);
}

/* Why users other than root and this one could change the contents of a directory, or NULL. */
static const char *flaw_of_parent(const struct stat *status)
{
	if (!S_ISDIR(status->st_mode)) {
		return "it is not a directory";
	}
	if (status->st_uid != 0 && status->st_uid != geteuid()) {
		return "it belongs to another user than root and the one that PHP runs as";
	}
	if ((status->st_mode & (S_IWGRP | S_IWOTH)) && !(status->st_mode & S_ISVTX)) {
		return "others may rename files in it (chmod go-w, or +t)";
	}
	return NULL;
}

static const char *flaw_of_own(const struct stat *status)
{
	if (status->st_uid != geteuid()) {
		return "another user created the directory of this user";
	}
	if (status->st_mode & (S_IWGRP | S_IWOTH)) {
		return "others may write to the directory of this user";
	}
	return NULL;
}

/* Opens parent/u<uid>. Returns what is wrong, or NULL with the store open. */
static const char *open_own(baton_store *store, const char *parent)
{
	char own[32];
	struct stat status;
	const char *flaw = NULL;
	char *real = realpath(parent, NULL);
	int above = real ? open(real, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;

	snprintf(own, sizeof own, "u%lu", (unsigned long) geteuid());
	if (above < 0 || fstat(above, &status) != 0) {
		flaw = strerror(errno);
	} else if (!(flaw = flaw_of_parent(&status))) {
		if (mkdirat(above, own, DIRECTORY_MODE) == 0) {
			/* With any umask, the server must be able to traverse it. */
			fchmodat(above, own, DIRECTORY_MODE, 0);
		}
		store->directory = openat(above, own, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (store->directory < 0 || fstat(store->directory, &status) != 0) {
			flaw = strerror(errno);
		} else if (!(flaw = flaw_of_own(&status)) && asprintf(&store->path, "%s/%s", real, own) < 0) {
			store->path = NULL;
			flaw = strerror(ENOMEM);
		}
	}
	if (above >= 0) {
		close(above);
	}
	free(real);
	return flaw;
}

bool baton_store_open(baton_store *store, const char *parent)
{
	if (store->directory >= 0) {
		return true;
	}
	if (!parent || !*parent || time(NULL) < store->retry_at) {
		return false;
	}
	const char *flaw = open_own(store, parent);
	if (flaw) {
		complain(flaw, parent);
		baton_store_close(store);
		store->retry_at = time(NULL) + 1;
	}
	return !flaw;
}

int baton_store_find(const baton_store *store, const char *name, uint64_t size)
{
	struct stat status;
	int fd = openat(store->directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || (uint64_t) status.st_size != size)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Namers share the lock, removers hold it alone: so nothing is removed that was just said to be in use. */
static bool lock(const baton_store *store, int how)
{
	int result;

	do {
		result = flock(store->directory, how);
	} while (result != 0 && errno == EINTR);
	return result == 0;
}

static void unlock(const baton_store *store)
{
	flock(store->directory, LOCK_UN);
}

bool baton_store_make_room(const baton_store *store, uint64_t bytes, const baton_store_limits *limits)
{
	uint64_t bytes_left = 0, left = 0;
	time_t now = time(NULL);
	struct dirent *found;
	struct stat status;
	int fd = openat(store->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;

	if (!list || !lock(store, LOCK_EX)) {
		if (list) {
			closedir(list);
		} else if (fd >= 0) {
			close(fd);
		}
		return false;
	}
	while ((found = readdir(list))) {
		if (fstatat(store->directory, found->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) {
			continue;
		}
		/* A time in the future, by a clock that was set back, counts as now. */
		if (now > status.st_mtim.tv_sec && now - status.st_mtim.tv_sec > limits->grace_s) {
			unlinkat(store->directory, found->d_name, 0);
		} else {
			bytes_left += (uint64_t) status.st_size;
			left++;
		}
	}
	unlock(store);
	closedir(list);
	/* Workers that ask at the same time may each get the last room: that many files more, at most. */
	return left < SNAPSHOTS_MAX && bytes_left <= limits->bytes_max && bytes <= limits->bytes_max - bytes_left;
}

bool baton_store_begin(const baton_store *store, baton_draft *draft)
{
	static unsigned number;

	snprintf(draft->name, sizeof draft->name, DRAFT_PREFIX "%ld-%u", (long) getpid(), number++);
	/* A draft with that name is one that a process with our id did not live to finish. */
	unlinkat(store->directory, draft->name, 0);
	draft->fd = openat(store->directory, draft->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return draft->fd >= 0;
}

bool baton_store_publish(const baton_store *store, baton_draft *draft, const char *name)
{
	/* If another worker was faster, its snapshot of the same version is replaced by an equal one. */
	bool done = fchmod(draft->fd, 0444) == 0
		&& renameat(store->directory, draft->name, store->directory, name) == 0;

	if (!done) {
		baton_store_abandon(store, draft);
		return false;
	}
	close(draft->fd);
	return true;
}

void baton_store_abandon(const baton_store *store, baton_draft *draft)
{
	close(draft->fd);
	unlinkat(store->directory, draft->name, 0);
}

bool baton_store_keep(const baton_store *store, const char *name, ino_t inode, const baton_store_limits *limits)
{
	struct stat status;
	time_t now = time(NULL);

	if (fstatat(store->directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || status.st_ino != inode) {
		return false;
	}
	/* The stamp is renewed now and then only, so that a busy file does not cost a write per response. */
	if (now - status.st_mtim.tv_sec <= limits->grace_s / 3) {
		return true;
	}
	if (!lock(store, LOCK_SH)) {
		return false;
	}
	bool kept = utimensat(store->directory, name, NULL, AT_SYMLINK_NOFOLLOW) == 0;
	unlock(store);
	return kept;
}
