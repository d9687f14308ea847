/*
 * The store: a directory of snapshots, shared by the workers of one user and named after the versions that they hold.
 *
 * A snapshot is complete once it has its name, and never written again. Its modification time says when it was last
 * named in a response. It is removed only when that is more than `baton.grace` ago: until then a server may still be
 * about to open it.
 */
#ifndef BATON_STORE_H
#define BATON_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define BATON_STORE_NAME_SIZE 96

typedef struct {
	int directory;   /* -1: not open */
	char *path;      /* real and absolute */
	time_t retry_at; /* when it may be tried to open it again */
} baton_store;

typedef struct {
	uint64_t bytes_max;
	time_t grace_s;
} baton_store_limits;

/* A snapshot under way: a file without its final name. */
typedef struct {
	int fd; /* open for reading and writing */
	char name[BATON_STORE_NAME_SIZE];
} baton_draft;

void baton_store_init(baton_store *store);
void baton_store_close(baton_store *store);

/*
 * Opens the directory of this user within `parent`, and makes it if need be. False, with a line in the error log, if
 * others could put files there. Asks the system at most once a second.
 */
bool baton_store_open(baton_store *store, const char *parent);

/* A descriptor of the snapshot with that name and size, or -1. */
int baton_store_find(const baton_store *store, const char *name, uint64_t size);

/* Removes what is out of use. False if another `bytes` would still be too much. */
bool baton_store_make_room(const baton_store *store, uint64_t bytes, const baton_store_limits *limits);

bool baton_store_begin(const baton_store *store, baton_draft *draft);
/* Both close the draft; after the first it is the snapshot `name`, unless that fails. */
bool baton_store_publish(const baton_store *store, baton_draft *draft, const char *name);
void baton_store_abandon(const baton_store *store, baton_draft *draft);

/*
 * Whether the snapshot is still there, and the one with that inode; if so it will be for at least half of the grace.
 */
bool baton_store_keep(const baton_store *store, const char *name, ino_t inode, const baton_store_limits *limits);

#endif
