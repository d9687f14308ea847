/*
 * baton: files as strings that are not read until looked at, and that a server sends by their names.
 * This file is what PHP sees of the extension; README.md tells how it works.
 */
#ifdef HAVE_CONFIG_H
# include "config.h"
#endif

#include "php_baton.h"

#include "SAPI.h"
#include "baton_arginfo.h"
#include "ext/standard/info.h"
#include "php_ini.h"
#include "php_streams.h"

ZEND_DECLARE_MODULE_GLOBALS(baton)

#if defined(ZTS) && defined(COMPILE_DL_BATON)
ZEND_TSRMLS_CACHE_DEFINE()
#endif

static PHP_INI_MH(on_update_positive)
{
	if (ZEND_STRTOL(ZSTR_VAL(new_value), NULL, 10) <= 0) {
		return FAILURE;
	}
	return OnUpdateLong(entry, new_value, mh_arg1, mh_arg2, mh_arg3, stage);
}

#define SETTING(name, value, who, on_update, field) \
	STD_PHP_INI_ENTRY("baton." name, value, who, on_update, field, zend_baton_globals, baton_globals)

PHP_INI_BEGIN()
	STD_PHP_INI_BOOLEAN("baton.enable", "1", PHP_INI_ALL, OnUpdateBool, enable, zend_baton_globals, baton_globals)
	SETTING("roots", "", PHP_INI_SYSTEM, OnUpdateString, roots)
	SETTING("snapshot_dir", "", PHP_INI_SYSTEM, OnUpdateString, snapshot_dir)
	SETTING("threshold", "8K", PHP_INI_SYSTEM, on_update_positive, threshold)
	SETTING("buffer", "256K", PHP_INI_SYSTEM, on_update_positive, buffer)
	SETTING("snapshot_max", "256M", PHP_INI_SYSTEM, on_update_positive, snapshot_max)
	SETTING("grace", "300", PHP_INI_SYSTEM, on_update_positive, grace)
	SETTING("settle", "0", PHP_INI_SYSTEM, OnUpdateLongGEZero, settle)
PHP_INI_END()

baton_store_limits baton_limits(void)
{
	return (baton_store_limits) {
		.bytes_max = (uint64_t) BATON_G(snapshot_max),
		.grace_s = (time_t) BATON_G(grace),
	};
}

/* The absolute path that PHP's file functions would open; NULL if another wrapper would, or it is forbidden. */
static zend_string *plain_path(zend_string *path)
{
	char expanded[MAXPATHLEN];

	if (ZSTR_LEN(path) == 0 || strlen(ZSTR_VAL(path)) != ZSTR_LEN(path)
			|| php_stream_locate_url_wrapper(ZSTR_VAL(path), NULL, 0) != &php_plain_files_wrapper
			|| strstr(ZSTR_VAL(path), "://") || php_check_open_basedir_ex(ZSTR_VAL(path), 0)) {
		return NULL;
	}
	if (ZSTR_VAL(path)[0] == '/') {
		return zend_string_copy(path);
	}
	return expand_filepath(ZSTR_VAL(path), expanded) ? zend_string_init(expanded, strlen(expanded), 0) : NULL;
}

static void report(baton_outcome outcome, const char *path)
{
	BATON_G(counts)[outcome]++;
	baton_report_outcome(outcome, path);
}

baton_entry *baton_file(zend_string *path)
{
	zend_string *absolute = BATON_G(enable) ? plain_path(path) : NULL;

	if (!absolute) {
		return NULL;
	}
	const baton_shelf_context context = {
		.store = &BATON_G(store),
		.rules = {.limits = baton_limits(), .settle_s = (time_t) BATON_G(settle)},
		.roots = BATON_G(roots),
		.threshold = (uint64_t) BATON_G(threshold),
		.report = report,
	};
	baton_entry *entry = baton_shelf_file(&BATON_G(shelf), &context, absolute);

	zend_string_release(absolute);
	return entry;
}

/* The directories whose files the server takes by name in answer to this request. Clients cannot set it. */
static char *server_roots(void)
{
	char *roots = sapi_getenv(ZEND_STRL("BATON_ZEROCOPY"));

	/* For the tests of file strings: the command line has no server, and names nothing. */
	if (!roots && !strcmp(sapi_module.name, "cli") && getenv("BATON_ZEROCOPY")) {
		roots = estrdup(getenv("BATON_ZEROCOPY"));
	}
	return roots;
}

static baton_obstacle find_obstacle(void)
{
	if (!BATON_G(enable)) {
		return BATON_SWITCHED_OFF;
	}
	if (!BATON_G(roots) || !*BATON_G(roots)) {
		return BATON_NO_ROOTS;
	}
	if (!BATON_G(snapshot_dir) || !*BATON_G(snapshot_dir)) {
		return BATON_NO_SNAPSHOT_DIR;
	}
	char *roots = server_roots();
	baton_obstacle obstacle = BATON_NO_OBSTACLE;
	if (!roots) {
		obstacle = BATON_SERVER_SILENT;
	} else if (!baton_store_open(&BATON_G(store), BATON_G(snapshot_dir))) {
		obstacle = BATON_STORE_UNUSABLE;
	} else if (!baton_is_beneath(BATON_G(store).path, roots)) {
		obstacle = BATON_STORE_NOT_NAMED;
	}
	if (roots) {
		efree(roots);
	}
	return obstacle;
}

static PHP_GINIT_FUNCTION(baton)
{
#if defined(ZTS) && defined(COMPILE_DL_BATON)
	ZEND_TSRMLS_CACHE_UPDATE();
#endif
	memset(baton_globals, 0, sizeof *baton_globals);
	baton_store_init(&baton_globals->store);
	baton_shelf_init(&baton_globals->shelf);
}

static PHP_GSHUTDOWN_FUNCTION(baton)
{
	baton_shelf_destroy(&baton_globals->shelf);
	baton_store_close(&baton_globals->store);
	baton_response_free(&baton_globals->response);
}

static PHP_MINIT_FUNCTION(baton)
{
	REGISTER_INI_ENTRIES();
	baton_report_begin();
	baton_functions_hook();
	baton_response_hook();
	return SUCCESS;
}

static PHP_MSHUTDOWN_FUNCTION(baton)
{
	baton_include_unhook();
	baton_response_unhook();
	UNREGISTER_INI_ENTRIES();
	return SUCCESS;
}

static PHP_RINIT_FUNCTION(baton)
{
#if defined(ZTS) && defined(COMPILE_DL_BATON)
	ZEND_TSRMLS_CACHE_UPDATE();
#endif
	/* Here and not in MINIT: OPcache must be behind the hook, or it would remember what the hook made. */
	baton_include_hook();
	baton_response_begin(&BATON_G(response));
	/* Here and not at the end of the last request: now the last reference to its strings is gone. */
	baton_shelf_begin_request(&BATON_G(shelf), (time_t) BATON_G(grace));
	BATON_G(obstacle) = find_obstacle();
	BATON_G(asked) = BATON_G(obstacle) == BATON_NO_OBSTACLE;
	if (baton_response_is_hooked()) {
		baton_report_obstacle(BATON_G(obstacle));
	}
	return SUCCESS;
}

static PHP_RSHUTDOWN_FUNCTION(baton)
{
	/* The server may be gone, upon which PHP leaves this function by longjmp; other modules still have work to do. */
	zend_try {
		baton_response_finish(&BATON_G(response));
	} zend_end_try();
	BATON_G(asked) = false;
	return SUCCESS;
}

static PHP_MINFO_FUNCTION(baton)
{
	char count[24];

	php_info_print_table_start();
	php_info_print_table_row(2, "baton", PHP_BATON_VERSION);
	php_info_print_table_row(2, "The server of this request takes names", BATON_G(asked) ? "yes" : "no");
	if (!BATON_G(asked)) {
		php_info_print_table_row(2, "What is in the way", baton_obstacle_text(BATON_G(obstacle)));
	}
	php_info_print_table_end();
	php_info_print_table_start();
	php_info_print_table_header(3, "Files in this worker", "Times", "What helps");
	for (int i = 0; i < BATON_OUTCOMES; i++) {
		snprintf(count, sizeof count, "%llu", (unsigned long long) BATON_G(counts)[i]);
		const char *remedy = baton_outcome_remedy(i);
		php_info_print_table_row(3, baton_outcome_word(i), count, remedy ? remedy : "");
	}
	php_info_print_table_end();
	DISPLAY_INI_ENTRIES();
}

PHP_FUNCTION(baton_status)
{
	ZEND_PARSE_PARAMETERS_NONE();
	array_init(return_value);
	add_assoc_bool(return_value, "asked", BATON_G(asked));
	for (int i = 0; i < BATON_OUTCOMES; i++) {
		add_assoc_long(return_value, baton_outcome_word(i), (zend_long) BATON_G(counts)[i]);
	}
}

static const zend_function_entry functions[] = {
	PHP_FE(baton_status, arginfo_baton_status)
	PHP_FE_END
};

zend_module_entry baton_module_entry = {
	STANDARD_MODULE_HEADER,
	"baton",
	functions,
	PHP_MINIT(baton),
	PHP_MSHUTDOWN(baton),
	PHP_RINIT(baton),
	PHP_RSHUTDOWN(baton),
	PHP_MINFO(baton),
	PHP_BATON_VERSION,
	PHP_MODULE_GLOBALS(baton),
	PHP_GINIT(baton),
	PHP_GSHUTDOWN(baton),
	NULL,
	STANDARD_MODULE_PROPERTIES_EX
};

#ifdef COMPILE_DL_BATON
ZEND_GET_MODULE(baton)
#endif
