/* The file strings of a worker: see shelf.h. */
#include "shelf.h"

#include "file_string.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Paths per worker. Each string costs a page of memory and three of the 65,530 mappings that a process may have. */
#define ENTRIES_MAX 1024

/* How long a file whose obstacle may pass (being written, just changed, no room) is left alone, in seconds. */
#define RETRY_S 1

static zend_ulong address_key(const char *bytes)
{
	return (zend_ulong) (uintptr_t) bytes >> 12;
}

void baton_shelf_init(baton_shelf *shelf)
{
	memset(shelf, 0, sizeof *shelf);
	zend_hash_init(&shelf->by_path, 64, NULL, NULL, 1);
	zend_hash_init(&shelf->by_address, 64, NULL, NULL, 1);
}

static void entry_free(baton_shelf *shelf, baton_entry *entry)
{
	if (entry->text) {
		zend_hash_index_del(&shelf->by_address, address_key(ZSTR_VAL(entry->text)));
		baton_file_string_unmap(entry->text);
	}
	zend_string_release_ex(entry->path, 1);
	free(entry->name);
	free(entry);
}

static bool in_use(const baton_shelf *shelf, const baton_entry *entry)
{
	return entry->request == shelf->request;
}

void baton_shelf_forget(baton_shelf *shelf, baton_entry *entry)
{
	if (entry->forgotten) {
		return;
	}
	zend_hash_del(&shelf->by_path, entry->path);
	entry->forgotten = true;
	if (!in_use(shelf, entry)) {
		entry_free(shelf, entry);
	}
}

void baton_shelf_destroy(baton_shelf *shelf)
{
	baton_entry *entry;

	baton_shelf_begin_request(shelf, 0);
	ZEND_HASH_FOREACH_PTR(&shelf->by_path, entry) {
		entry_free(shelf, entry);
	} ZEND_HASH_FOREACH_END();
	zend_hash_destroy(&shelf->by_path);
	zend_hash_destroy(&shelf->by_address);
}

/* Strings unused for a while keep snapshots in memory that the store may have removed. */
static void tidy(baton_shelf *shelf, time_t grace_s)
{
	baton_entry *entry;

	if (shelf->now - shelf->tidied_at <= grace_s) {
		return;
	}
	shelf->tidied_at = shelf->now;
	ZEND_HASH_FOREACH_PTR(&shelf->by_path, entry) {
		if (shelf->now - entry->used_at > grace_s) {
			baton_shelf_forget(shelf, entry);
		}
	} ZEND_HASH_FOREACH_END();
}

void baton_shelf_begin_request(baton_shelf *shelf, time_t grace_s)
{
	baton_entry *entry, *next;

	for (entry = shelf->in_use; entry; entry = next) {
		next = entry->next_in_use;
		if (entry->forgotten) {
			entry_free(shelf, entry);
		} else if (entry->text) {
			/* Scripts that ended without giving everything back have left their references in the count. */
			GC_SET_REFCOUNT(entry->text, 1);
		}
	}
	shelf->in_use = NULL;
	shelf->request++;
	shelf->now = time(NULL);
	tidy(shelf, grace_s);
}

static baton_entry *use(baton_shelf *shelf, baton_entry *entry)
{
	if (!in_use(shelf, entry)) {
		entry->request = shelf->request;
		entry->used_at = shelf->now;
		entry->next_in_use = shelf->in_use;
		shelf->in_use = entry;
	}
	return entry;
}

bool baton_is_beneath(const char *path, const char *list)
{
	while (*list) {
		size_t length = strcspn(list, ":"), bare = length;
		while (bare > 0 && list[bare - 1] == '/') {
			bare--;
		}
		if (length > 0 && strncmp(path, list, bare) == 0 && (path[bare] == '/' || path[bare] == '\0')) {
			return true;
		}
		list += length + (list[length] == ':');
	}
	return false;
}

/* Whether the file that is open as `fd` lies, by its real path, beneath one of the roots, by theirs. */
static bool beneath_roots(int fd, const char *path, const char *roots)
{
	char real[PATH_MAX], root[PATH_MAX], real_root[PATH_MAX];
	struct stat of_fd, of_path;

	/* The comparison closes the gap between open() and realpath(). */
	if (!realpath(path, real) || stat(real, &of_path) != 0 || fstat(fd, &of_fd) != 0
			|| of_fd.st_ino != of_path.st_ino || of_fd.st_dev != of_path.st_dev) {
		return false;
	}
	while (*roots) {
		size_t length = strcspn(roots, ":");
		if (length > 0 && length < sizeof root) {
			memcpy(root, roots, length);
			root[length] = '\0';
			if (realpath(root, real_root) && baton_is_beneath(real, real_root)) {
				return true;
			}
		}
		roots += length + (roots[length] == ':');
	}
	return false;
}

/* Makes the entry a string. False if memory is short. */
static bool map(baton_shelf *shelf, baton_entry *entry, const baton_store *store, int snapshot)
{
	char name[BATON_VERSION_NAME_SIZE];
	struct stat status;

	baton_version_name(&entry->version, name);
	if (fstat(snapshot, &status) != 0) {
		return false;
	}
	entry->snapshot_inode = status.st_ino;
	int length = asprintf(&entry->name, "%s/%s", store->path, name);
	if (length < 0) {
		entry->name = NULL;
		return false;
	}
	entry->name_length = (size_t) length;
	entry->text = baton_file_string_map(snapshot, entry->version.size);
	if (!entry->text) {
		return false;
	}
	zend_hash_index_update_ptr(&shelf->by_address, address_key(ZSTR_VAL(entry->text)), entry);
	return true;
}

/* Whether the obstacle lies in this version of the file, and not in the moment. */
static bool for_good(baton_outcome why)
{
	return why >= BATON_OUTSIDE_ROOTS && why <= BATON_TOO_LARGE;
}

static void examine(baton_shelf *shelf, const baton_shelf_context *context, baton_entry *entry)
{
	int snapshot = -1;
	int fd = open(ZSTR_VAL(entry->path), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	entry->why = BATON_SYSTEM_ERROR;
	if (fd >= 0) {
		entry->why = beneath_roots(fd, ZSTR_VAL(entry->path), context->roots)
			? baton_snapshot_take(context->store, &context->rules, fd, &entry->version, &snapshot)
			: BATON_OUTSIDE_ROOTS;
		close(fd);
	}
	if (entry->why == BATON_MAPPED && !map(shelf, entry, context->store, snapshot)) {
		entry->why = BATON_SYSTEM_ERROR;
	}
	if (snapshot >= 0) {
		close(snapshot);
	}
	entry->retry_at = for_good(entry->why) ? 0 : time(NULL) + RETRY_S;
}

/* Makes room for one more entry. False if this request uses them all. */
static bool evict(baton_shelf *shelf)
{
	baton_entry *entry, *oldest = NULL;

	if (zend_hash_num_elements(&shelf->by_path) < ENTRIES_MAX) {
		return true;
	}
	ZEND_HASH_FOREACH_PTR(&shelf->by_path, entry) {
		if (!in_use(shelf, entry) && (!oldest || entry->request < oldest->request)) {
			oldest = entry;
		}
	} ZEND_HASH_FOREACH_END();
	if (oldest) {
		baton_shelf_forget(shelf, oldest);
	}
	return oldest != NULL;
}

static baton_entry *place(baton_shelf *shelf, const baton_shelf_context *context, zend_string *path,
	const baton_version *version)
{
	baton_entry *entry;

	if (!evict(shelf) || !(entry = calloc(1, sizeof *entry))) {
		context->report(BATON_NO_ROOM, ZSTR_VAL(path));
		return NULL;
	}
	entry->path = zend_string_init(ZSTR_VAL(path), ZSTR_LEN(path), 1);
	entry->version = *version;
	examine(shelf, context, entry);
	zend_hash_add_new_ptr(&shelf->by_path, entry->path, entry);
	return use(shelf, entry);
}

baton_entry *baton_shelf_file(baton_shelf *shelf, const baton_shelf_context *context, zend_string *path)
{
	struct stat status;

	if (stat(ZSTR_VAL(path), &status) != 0 || !S_ISREG(status.st_mode)
			|| (uint64_t) status.st_size < context->threshold || status.st_size == 0) {
		return NULL;
	}
	baton_version version = baton_version_of(&status);
	baton_entry *entry = zend_hash_find_ptr(&shelf->by_path, path);

	if (entry && (!baton_version_equal(&entry->version, &version)
			|| (!entry->text && entry->retry_at && time(NULL) >= entry->retry_at))) {
		baton_shelf_forget(shelf, entry);
		entry = NULL;
	}
	if (entry) {
		use(shelf, entry);
	} else if (!(entry = place(shelf, context, path, &version))) {
		return NULL;
	}
	context->report(entry->why, ZSTR_VAL(path));
	return entry->text ? entry : NULL;
}

baton_entry *baton_shelf_at(baton_shelf *shelf, const char *bytes, size_t length)
{
	if (!baton_may_be_file_string(bytes)) {
		return NULL;
	}
	baton_entry *entry = zend_hash_index_find_ptr(&shelf->by_address, address_key(bytes));
	return entry && ZSTR_VAL(entry->text) == bytes && ZSTR_LEN(entry->text) == length ? entry : NULL;
}
