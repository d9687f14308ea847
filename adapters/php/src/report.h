/*
 * What became of the files that a script read: named in the response, or why not. The words are those of
 * baton_status(), phpinfo() and the error log.
 */
#ifndef BATON_REPORT_H
#define BATON_REPORT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
	/* The file is a string on the shelf. */
	BATON_MAPPED,
	/* The file stays a plain string, for as long as it is not changed: */
	BATON_OUTSIDE_ROOTS,
	BATON_NOT_WORLD_READABLE,
	BATON_FILE_SYSTEM_UNKNOWN,
	BATON_NOT_OUR_FILE,
	BATON_TOO_LARGE,
	/* The file stays a plain string for a moment: */
	BATON_JUST_CHANGED,
	BATON_BEING_WRITTEN,
	BATON_NO_ROOM,
	BATON_SYSTEM_ERROR,
	/* What became of mapped files that a script put out: */
	BATON_NAMED,
	BATON_EXPANDED,
	BATON_OUTCOMES,
} baton_outcome;

/* Why all files of a request stay plain strings. */
typedef enum {
	BATON_NO_OBSTACLE,
	BATON_SWITCHED_OFF,
	BATON_NO_ROOTS,
	BATON_NO_SNAPSHOT_DIR,
	BATON_SERVER_SILENT,
	BATON_STORE_UNUSABLE,
	BATON_STORE_NOT_NAMED,
	BATON_OBSTACLES,
} baton_obstacle;

const char *baton_outcome_word(baton_outcome outcome);

/* What an administrator can do about it, or NULL: it is well, or passes. */
const char *baton_outcome_remedy(baton_outcome outcome);

/* A sentence of what is in the way and what helps; NULL for none. */
const char *baton_obstacle_text(baton_obstacle obstacle);

/* To be called before a process manager makes its workers: what one of them has logged, the others need not. */
void baton_report_begin(void);

/* Writes to PHP's error log why a file, or all files, stay plain strings: once for each reason that lasts. */
void baton_report_outcome(baton_outcome outcome, const char *path);
void baton_report_obstacle(baton_obstacle obstacle);

#endif
