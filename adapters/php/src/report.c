/* What is said of files: see report.h. */
#include "report.h"

#include "php.h"

#include <stdatomic.h>
#include <sys/mman.h>

static const struct {
	const char *word;
	const char *remedy;
} outcomes[BATON_OUTCOMES] = {
	[BATON_MAPPED] = {"mapped", NULL},
	[BATON_OUTSIDE_ROOTS] = {"outside_roots", "add its folder to baton.roots if all may read it"},
	[BATON_NOT_WORLD_READABLE] = {"not_world_readable", "chmod o+r, if all may read it"},
	[BATON_FILE_SYSTEM_UNKNOWN] = {"file_system_unknown", "move it to ext4, XFS, Btrfs, F2FS or tmpfs"},
	[BATON_NOT_OUR_FILE] = {"not_our_file", "run PHP as its owner, or set baton.settle (not on tmpfs or overlays)"},
	[BATON_TOO_LARGE] = {"too_large", "raise baton.snapshot_max to four times its size"},
	[BATON_JUST_CHANGED] = {"just_changed", NULL},
	[BATON_BEING_WRITTEN] = {"being_written", NULL},
	[BATON_NO_ROOM] = {"no_room", "raise baton.snapshot_max, or make room in baton.snapshot_dir"},
	[BATON_SYSTEM_ERROR] = {"system_error", "look whether PHP's user can open it and write to baton.snapshot_dir"},
	[BATON_NAMED] = {"named", NULL},
	[BATON_EXPANDED] = {"expanded", NULL},
};

static const char *const obstacles[BATON_OBSTACLES] = {
	[BATON_SWITCHED_OFF] = "baton.enable is off",
	[BATON_NO_ROOTS] = "set baton.roots to the folders of the files that all may read",
	[BATON_NO_SNAPSHOT_DIR] = "set baton.snapshot_dir, and name that folder in `named_files` of the server's route",
	[BATON_SERVER_SILENT] = "the server takes no names: give the route `named_files` with the folder of baton.snapshot_dir",
	[BATON_STORE_UNUSABLE] = "baton.snapshot_dir is of no use; the error log says why",
	[BATON_STORE_NOT_NAMED] = "baton.snapshot_dir is in none of the folders in `named_files` of the server's route",
};

/* By reason: first outcomes, then obstacles. Shared with the processes that are forked later. */
static atomic_bool *told;

const char *baton_outcome_word(baton_outcome outcome)
{
	return outcomes[outcome].word;
}

const char *baton_outcome_remedy(baton_outcome outcome)
{
	return outcomes[outcome].remedy;
}

const char *baton_obstacle_text(baton_obstacle obstacle)
{
	return obstacles[obstacle];
}

void baton_report_begin(void)
{
	void *shared = mmap(NULL, BATON_OUTCOMES + BATON_OBSTACLES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	told = shared == MAP_FAILED ? NULL : shared;
}

static bool is_news(unsigned reason)
{
	return told && !atomic_load_explicit(&told[reason], memory_order_relaxed) && !atomic_exchange(&told[reason], true);
}

void baton_report_outcome(baton_outcome outcome, const char *path)
{
	char line[MAXPATHLEN + 256];

	if (outcomes[outcome].remedy && is_news(outcome)) {
		snprintf(line, sizeof line, "baton: %s is sent as a plain string (%s): %s. Other files with this reason are not logged",
			path, outcomes[outcome].word, outcomes[outcome].remedy);
		php_log_err(line);
	}
}

void baton_report_obstacle(baton_obstacle obstacle)
{
	char line[256];

	if (obstacle > BATON_SWITCHED_OFF && is_news(BATON_OUTCOMES + obstacle)) {
		snprintf(line, sizeof line, "baton: all files are sent as plain strings: %s", obstacles[obstacle]);
		php_log_err(line);
	}
}
