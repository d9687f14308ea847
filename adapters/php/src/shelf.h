/*
 * The shelf: the file strings of a worker, by the path that scripts read and by the address of their bytes.
 *
 * A file string outlives the request that made it: the next script that reads the same version of the file gets the
 * same string for the price of one stat(2). Within a request strings are never unmapped, since their users are
 * unknown; at the start of the next one there are none.
 */
#ifndef BATON_SHELF_H
#define BATON_SHELF_H

#include "report.h"
#include "snapshot.h"
#include "store.h"
#include "version.h"

#include "php.h"

typedef struct _baton_entry baton_entry;

struct _baton_entry {
	zend_string *path;
	baton_version version;
	zend_string *text;  /* NULL: this version stays a plain string, */
	baton_outcome why;  /* for this reason, */
	time_t retry_at;    /* until then; 0: for good */
	char *name;         /* of the snapshot: absolute */
	size_t name_length;
	ino_t snapshot_inode;
	enum { CODE_UNKNOWN, CODE_NONE, CODE_MAYBE } code; /* whether PHP would find something to run in it */
	uint64_t request;   /* that used it last */
	time_t used_at;
	bool forgotten;     /* no longer found by path */
	baton_entry *next_in_use;
};

typedef struct {
	HashTable by_path;
	HashTable by_address;
	uint64_t request;
	time_t now;         /* of the request's start */
	time_t tidied_at;
	baton_entry *in_use;
} baton_shelf;

/* What the shelf is told about the world for the length of a call. */
typedef struct {
	baton_store *store;
	baton_snapshot_rules rules;
	const char *roots;  /* colon-separated: only files beneath are taken */
	uint64_t threshold; /* bytes: smaller files are not */
	void (*report)(baton_outcome outcome, const char *path);
} baton_shelf_context;

void baton_shelf_init(baton_shelf *shelf);
void baton_shelf_destroy(baton_shelf *shelf);

/* To be called when nothing of the last request is left. */
void baton_shelf_begin_request(baton_shelf *shelf, time_t grace_s);

/* The string of the file that an absolute path leads to now; NULL: read it the usual way. */
baton_entry *baton_shelf_file(baton_shelf *shelf, const baton_shelf_context *context, zend_string *path);

/* The entry of which these are all the bytes, or NULL. */
baton_entry *baton_shelf_at(baton_shelf *shelf, const char *bytes, size_t length);

/* Makes the next read of its file start anew. */
void baton_shelf_forget(baton_shelf *shelf, baton_entry *entry);

/* Whether `path` is, or is beneath, one of the directories of a colon-separated list. */
bool baton_is_beneath(const char *path, const char *list);

#endif
