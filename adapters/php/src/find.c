/* Contents of files in output: see find.h. */
#include "find.h"

/* memmem(3) skips most of what it looks through for needles of up to 256 bytes. */
#define NEEDLE_BYTES ((size_t) 256)

/* Files that begin like each other, or like themselves, are not worth more. */
enum { PLACES_MAX = 4 };

static const char *find(const zend_string *text, const char *from, const char *end)
{
	size_t needle = MIN(ZSTR_LEN(text), NEEDLE_BYTES);

	for (int place = 0; place < PLACES_MAX && (size_t) (end - from) >= ZSTR_LEN(text); place++) {
		size_t last = (size_t) (end - from) - (ZSTR_LEN(text) - needle);
		const char *at = memmem(from, last, ZSTR_VAL(text), needle);
		if (!at || !memcmp(at, ZSTR_VAL(text), ZSTR_LEN(text))) {
			return at;
		}
		from = at + 1;
	}
	return NULL;
}

void baton_search_begin(baton_search *search, const baton_shelf *shelf, const char *bytes, size_t length)
{
	search->bytes = bytes;
	search->end = bytes + length;
	search->count = 0;
	for (baton_entry *entry = shelf->in_use; entry && search->count < BATON_SOUGHT_MAX; entry = entry->next_in_use) {
		const char *at = entry->text ? find(entry->text, bytes, search->end) : NULL;
		if (at) {
			search->sought[search->count].entry = entry;
			search->sought[search->count++].at = at;
		}
	}
}

baton_entry *baton_search_next(baton_search *search, const char **at)
{
	baton_entry *first = NULL;

	for (unsigned i = 0; i < search->count; i++) {
		const char *place = search->sought[i].at;
		if (place && place < search->bytes) {
			place = search->sought[i].at = find(search->sought[i].entry->text, search->bytes, search->end);
		}
		if (place && (!first || place < *at)) {
			first = search->sought[i].entry;
			*at = place;
		}
	}
	if (first) {
		search->bytes = *at + ZSTR_LEN(first->text);
	}
	return first;
}
