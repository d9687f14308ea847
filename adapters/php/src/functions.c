/*
 * The functions that give scripts whole files. Each does what it always did, unless the call is one for all the bytes
 * of a plain file that has a file string.
 */
#include "php_baton.h"

#include "SAPI.h"
#include "ext/standard/file.h"
#include "ext/standard/head.h"
#include "php_streams.h"

#include <sys/stat.h>

static zif_handler php_file_get_contents;
static zif_handler php_readfile;
static zif_handler php_fpassthru;
static zif_handler php_fastcgi_finish_request;

/* What file_get_contents() and readfile() take after the path. Who sets one of them wants something else. */
enum { USE_INCLUDE_PATH = 2, CONTEXT, OFFSET, LENGTH };

static bool is_default(const zval *argument, uint32_t number)
{
	switch (number) {
		case USE_INCLUDE_PATH:
			return Z_TYPE_P(argument) == IS_FALSE;
		case OFFSET:
			return Z_TYPE_P(argument) == IS_LONG && Z_LVAL_P(argument) == 0;
		default:
			return Z_TYPE_P(argument) == IS_NULL;
	}
}

/* The entry of the file that a call wants as a whole, or NULL. `last` is the last argument that the function has. */
static baton_entry *file_of_call(zend_execute_data *execute_data, uint32_t last)
{
	uint32_t count = ZEND_NUM_ARGS();

	if (!BATON_G(asked) || count < 1 || count > last || Z_TYPE_P(ZEND_CALL_ARG(execute_data, 1)) != IS_STRING) {
		return NULL;
	}
	for (uint32_t number = USE_INCLUDE_PATH; number <= count; number++) {
		if (!is_default(ZEND_CALL_ARG(execute_data, number), number)) {
			return NULL;
		}
	}
	return baton_file(Z_STR_P(ZEND_CALL_ARG(execute_data, 1)));
}

static PHP_FUNCTION(baton_file_get_contents)
{
	baton_entry *entry = file_of_call(execute_data, LENGTH);

	if (!entry) {
		php_file_get_contents(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	RETURN_STR_COPY(entry->text);
}

static PHP_FUNCTION(baton_readfile)
{
	baton_entry *entry = file_of_call(execute_data, CONTEXT);

	if (!entry) {
		php_readfile(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	zend_write(ZSTR_VAL(entry->text), ZSTR_LEN(entry->text));
	RETURN_LONG((zend_long) ZSTR_LEN(entry->text));
}

/* The entry of the very file that a stream has open and has not begun to read, or NULL. */
static baton_entry *file_of_stream(php_stream *stream)
{
	struct stat status;
	int fd;

	if (!php_stream_is(stream, PHP_STREAM_IS_STDIO) || stream->readfilters.head || stream->position != 0
			|| stream->writepos != stream->readpos || !stream->orig_path || strpbrk(stream->mode, "+wacx")
			|| php_stream_cast(stream, PHP_STREAM_AS_FD, (void **) &fd, 0) != SUCCESS
			|| lseek(fd, 0, SEEK_CUR) != 0 || fstat(fd, &status) != 0) {
		return NULL;
	}
	baton_version opened = baton_version_of(&status);
	zend_string *path = zend_string_init(stream->orig_path, strlen(stream->orig_path), 0);
	baton_entry *entry = baton_file(path);

	zend_string_release(path);
	return entry && baton_version_equal(&entry->version, &opened) ? entry : NULL;
}

static PHP_FUNCTION(baton_fpassthru)
{
	baton_entry *entry = NULL;
	php_stream *stream = NULL;

	if (BATON_G(asked) && ZEND_NUM_ARGS() == 1) {
		zval *resource = ZEND_CALL_ARG(execute_data, 1);
		if (Z_TYPE_P(resource) == IS_RESOURCE) {
			stream = zend_fetch_resource2(Z_RES_P(resource), NULL, php_file_le_stream(), php_file_le_pstream());
		}
		entry = stream ? file_of_stream(stream) : NULL;
	}
	if (!entry) {
		php_fpassthru(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	zend_write(ZSTR_VAL(entry->text), ZSTR_LEN(entry->text));
	/* Where PHP leaves the stream when it has passed a mapping of the file on. */
	php_stream_seek(stream, (zend_off_t) ZSTR_LEN(entry->text), SEEK_SET);
	RETURN_LONG((zend_long) ZSTR_LEN(entry->text));
}

/* Ends the response behind PHP's output functions, where what is held would be left. */
static PHP_FUNCTION(baton_fastcgi_finish_request)
{
	if (BATON_G(asked)) {
		php_output_end_all();
		php_header();
		baton_response_finish(&BATON_G(response));
	}
	php_fastcgi_finish_request(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static void hook(const char *name, zif_handler *original, zif_handler replacement)
{
	zend_internal_function *function = zend_hash_str_find_ptr(CG(function_table), name, strlen(name));

	if (function && function->type == ZEND_INTERNAL_FUNCTION) {
		*original = function->handler;
		function->handler = replacement;
	}
}

void baton_functions_hook(void)
{
	hook("file_get_contents", &php_file_get_contents, PHP_FN(baton_file_get_contents));
	hook("readfile", &php_readfile, PHP_FN(baton_readfile));
	hook("fpassthru", &php_fpassthru, PHP_FN(baton_fpassthru));
	hook("fastcgi_finish_request", &php_fastcgi_finish_request, PHP_FN(baton_fastcgi_finish_request));
}
