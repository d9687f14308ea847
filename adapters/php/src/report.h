/*
 * What became of the files that a script read: named in the response, or why not. The words are those of
 * baton_status() and phpinfo().
 */
#ifndef BATON_REPORT_H
#define BATON_REPORT_H

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

const char *baton_outcome_word(baton_outcome outcome);

#endif
