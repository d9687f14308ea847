/* The words for what became of files: see report.h. */
#include "report.h"

static const char *const words[BATON_OUTCOMES] = {
	[BATON_MAPPED] = "mapped",
	[BATON_OUTSIDE_ROOTS] = "outside_roots",
	[BATON_NOT_WORLD_READABLE] = "not_world_readable",
	[BATON_FILE_SYSTEM_UNKNOWN] = "file_system_unknown",
	[BATON_NOT_OUR_FILE] = "not_our_file",
	[BATON_TOO_LARGE] = "too_large",
	[BATON_JUST_CHANGED] = "just_changed",
	[BATON_BEING_WRITTEN] = "being_written",
	[BATON_NO_ROOM] = "no_room",
	[BATON_SYSTEM_ERROR] = "system_error",
	[BATON_NAMED] = "named",
	[BATON_EXPANDED] = "expanded",
};

const char *baton_outcome_word(baton_outcome outcome)
{
	return words[outcome];
}
