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

static bool is_absent(zend_execute_data *execute_data, uint32_t number, zend_uchar neutral)
{
	if (ZEND_NUM_ARGS() < number) {
		return true;
	}
	const zval *argument = ZEND_CALL_ARG(execute_data, number);
	return Z_TYPE_P(argument) == neutral || (neutral == IS_LONG && Z_TYPE_P(argument) == IS_LONG);
}

/* Arguments after the path: use_include_path, context, offset, length. Whoever sets one wants something else. */
static bool wants_whole_file(zend_execute_data *execute_data)
{
	return ZEND_NUM_ARGS() >= 1 && ZEND_NUM_ARGS() <= 5
		&& is_absent(execute_data, 2, IS_FALSE) && is_absent(execute_data, 3, IS_NULL)
		&& is_absent(execute_data, 4, IS_LONG) && is_absent(execute_data, 5, IS_NULL)
		&& (ZEND_NUM_ARGS() < 4 || Z_LVAL_P(ZEND_CALL_ARG(execute_data, 4)) == 0)
		&& Z_TYPE_P(ZEND_CALL_ARG(execute_data, 1)) == IS_STRING;
}

static baton_entry *file_of_call(zend_execute_data *execute_data)
{
	if (!BATON_G(asked) || !wants_whole_file(execute_data)) {
		return NULL;
	}
	return baton_file(Z_STR_P(ZEND_CALL_ARG(execute_data, 1)));
}

static PHP_FUNCTION(baton_file_get_contents)
{
	baton_entry *entry = file_of_call(execute_data);

	if (!entry) {
		php_file_get_contents(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	RETURN_STR_COPY(entry->text);
}

static PHP_FUNCTION(baton_readfile)
{
	baton_entry *entry = file_of_call(execute_data);

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
