/*
 * Contents of files in output that is no file string any more: an output buffer, a concatenation, a page of a template
 * engine. Where they lie is guessed by their first bytes and proven by comparing all of them with the snapshot that is
 * named, whatever the script has done in between.
 */
#ifndef BATON_FIND_H
#define BATON_FIND_H

#include "shelf.h"

/* More files of one request are not looked for. */
#define BATON_SOUGHT_MAX 32

typedef struct {
	const char *bytes;
	const char *end;
	unsigned count;
	/* Files of this request, and where each is found next: NULL if nowhere. */
	struct {
		baton_entry *entry;
		const char *at;
	} sought[BATON_SOUGHT_MAX];
} baton_search;

/* Looks for the files that this request has read. The output must stay as it is while the search is used. */
void baton_search_begin(baton_search *search, const baton_shelf *shelf, const char *bytes, size_t length);

/* The next file, and where its contents begin; NULL if there is none. */
baton_entry *baton_search_next(baton_search *search, const char **at);

#endif
