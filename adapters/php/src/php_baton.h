/* The extension's state, per worker, and the parts that hook into PHP. */
#ifndef PHP_BATON_H
#define PHP_BATON_H

#include "report.h"
#include "response.h"
#include "shelf.h"
#include "store.h"

#include "php.h"

#define PHP_BATON_VERSION "0.1.0"

extern zend_module_entry baton_module_entry;
#define phpext_baton_ptr &baton_module_entry

ZEND_BEGIN_MODULE_GLOBALS(baton)
	/* What php.ini says: README.md has the table. */
	bool enable;
	zend_long threshold;
	char *roots;
	char *snapshot_dir;
	zend_long snapshot_max;
	zend_long grace;
	zend_long settle;
	zend_long buffer;

	/* What keeps files of this request from being strings that the server takes by their names. */
	baton_obstacle obstacle;
	bool asked; /* that there is no obstacle */
	baton_store store;
	baton_shelf shelf;
	baton_response response;
	uint64_t counts[BATON_OUTCOMES];
ZEND_END_MODULE_GLOBALS(baton)

ZEND_EXTERN_MODULE_GLOBALS(baton)
#define BATON_G(field) ZEND_MODULE_GLOBALS_ACCESSOR(baton, field)

#if defined(ZTS) && defined(COMPILE_DL_BATON)
ZEND_TSRMLS_CACHE_EXTERN()
#endif

/* The entry of the file that `path` means to this request, or NULL: then PHP does what it would have done. */
baton_entry *baton_file(zend_string *path);

baton_store_limits baton_limits(void);

/* functions.c: file_get_contents(), readfile(), fpassthru(), fastcgi_finish_request(). */
void baton_functions_hook(void);

/* include.c: include and its relatives. To be called when all other extensions have started. */
void baton_include_hook(void);
void baton_include_unhook(void);

#endif
