/* Responses in which files are named: see response.h. */
#include "response.h"

#include "find.h"
#include "php_baton.h"

#include "SAPI.h"
#include "php_output.h"

#include <stdlib.h>
#include <time.h>

/* The server takes a script for stuck of which it hears nothing. One that goes on writing for so long is slow: its
 * response is sent as it is made. */
enum { HELD_MS_MAX = 1000 };

static size_t (*server_write)(const char *bytes, size_t length);
static void (*server_flush)(void *context);
static int (*server_send_headers)(sapi_headers_struct *headers);
static zend_write_func_t php_echo;

static bool is_header(const sapi_header_struct *header, const char *name)
{
	size_t length = strlen(name);

	return header->header_len > length && header->header[length] == ':' && !strncasecmp(header->header, name, length);
}

/* A script that speaks one of these to the server itself knows what stands in its body. */
static bool names_files_itself(sapi_headers_struct *headers)
{
	zend_llist_position position;
	sapi_header_struct *header = zend_llist_get_first_ex(&headers->headers, &position);

	for (; header; header = zend_llist_get_next_ex(&headers->headers, &position)) {
		if (is_header(header, "X-ZeroCopy") || is_header(header, "X-Sendfile")
				|| is_header(header, "X-Accel-Redirect")) {
			return true;
		}
	}
	return false;
}

static void write_out(const char *bytes, size_t length)
{
	while (length > 0) {
		size_t written = server_write(bytes, length);
		if (written == 0 || written > length) {
			return; /* The server is gone, and PHP knows. */
		}
		bytes += written;
		length -= written;
	}
}

/* Writes out the held body with the contents in the place of the names. */
static void write_expanded(const baton_response *response)
{
	size_t position = 0;

	for (unsigned i = 0; i < response->names; i++) {
		const baton_span *span = &response->spans[i];
		write_out(response->body + position, span->offset - position);
		write_out(ZSTR_VAL(span->entry->text), ZSTR_LEN(span->entry->text));
		position = span->offset + span->entry->name_length;
	}
	write_out(response->body + position, response->used - position);
	BATON_G(counts)[BATON_EXPANDED] += response->names;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}

static bool is_held_for_long(const baton_response *response)
{
	return now_ms() - response->held_since_ms >= HELD_MS_MAX;
}

static void hold_head(baton_response *response, const sapi_headers_struct *headers)
{
	response->held = true;
	response->held_since_ms = now_ms();
	response->status = headers->http_response_code;
	response->status_line = headers->http_status_line ? estrdup(headers->http_status_line) : NULL;
}

static void send_held_head(baton_response *response)
{
	sapi_headers_struct *headers = &SG(sapi_headers);

	/* First, since sending comes back to the hooks, and may not return when the client is gone. */
	response->held = false;
	headers->http_response_code = response->status;
	if (headers->http_status_line) {
		efree(headers->http_status_line);
	}
	headers->http_status_line = response->status_line;
	response->status_line = NULL;
	server_send_headers(headers);
}

static void release_plain(baton_response *response)
{
	send_held_head(response);
	write_expanded(response);
}

static int is_content_length(void *header, void *unused)
{
	return is_header(header, "Content-Length");
}

/* A length that the script counted is that of the contents; the server knows it better. */
static void add_header(const baton_response *response)
{
	char line[16 + BATON_NAMES_MAX * 32];
	int length = snprintf(line, sizeof line, "X-ZeroCopy: ");

	for (unsigned i = 0; i < response->names; i++) {
		length += snprintf(line + length, sizeof line - (size_t) length, "%s%zu/%zu", i ? ":" : "",
			response->spans[i].offset, response->spans[i].entry->name_length);
	}
	sapi_header_struct header = {.header = estrndup(line, (size_t) length), .header_len = (size_t) length};
	zend_llist_del_element(&SG(sapi_headers).headers, NULL, is_content_length);
	zend_llist_add_element(&SG(sapi_headers).headers, &header);
}

/* Whether the server will find every snapshot that the body names. */
static bool names_will_last(const baton_response *response)
{
	baton_store_limits limits = baton_limits();

	for (unsigned i = 0; i < response->names; i++) {
		baton_entry *entry = response->spans[i].entry;
		const char *name = strrchr(entry->name, '/') + 1;
		if (!baton_store_keep(&BATON_G(store), name, entry->snapshot_inode, &limits)) {
			baton_shelf_forget(&BATON_G(shelf), entry);
			return false;
		}
	}
	return true;
}

void baton_response_finish(baton_response *response)
{
	if (!response->held) {
		return;
	}
	if (response->names == 0 || !names_will_last(response)) {
		release_plain(response);
		return;
	}
	add_header(response);
	send_held_head(response);
	write_out(response->body, response->used);
	BATON_G(counts)[BATON_NAMED] += response->names;
}

void baton_response_begin(baton_response *response)
{
	response->held = false;
	response->used = 0;
	response->names = 0;
}

void baton_response_free(baton_response *response)
{
	free(response->body);
	memset(response, 0, sizeof *response);
}

static bool append(baton_response *response, const char *bytes, size_t length)
{
	size_t bound = (size_t) BATON_G(buffer);

	if (response->used > bound || length > bound - response->used) {
		return false;
	}
	if (length > response->room - response->used) {
		size_t room = MAX(MAX(response->room * 2, response->used + length), 8192);
		char *body = realloc(response->body, room);
		if (!body) {
			return false;
		}
		response->body = body;
		response->room = room;
	}
	memcpy(response->body + response->used, bytes, length);
	response->used += length;
	return true;
}

static bool append_name(baton_response *response, baton_entry *entry)
{
	size_t offset = response->used;

	if (response->names == BATON_NAMES_MAX) {
		return append(response, ZSTR_VAL(entry->text), ZSTR_LEN(entry->text));
	}
	if (!append(response, entry->name, entry->name_length)) {
		return false;
	}
	response->spans[response->names++] = (baton_span) {.offset = offset, .entry = entry};
	return true;
}

/* Puts output into the body, with names in the place of the files whose contents are in it. */
static bool append_output(baton_response *response, const char *bytes, size_t length)
{
	baton_entry *entry = baton_shelf_at(&BATON_G(shelf), bytes, length);
	baton_search search;
	const char *at;

	if (entry) {
		return append_name(response, entry);
	}
	baton_search_begin(&search, &BATON_G(shelf), bytes, length);
	for (const char *end = bytes + length; (entry = baton_search_next(&search, &at)); length = (size_t) (end - bytes)) {
		if (!append(response, bytes, (size_t) (at - bytes)) || !append_name(response, entry)) {
			return false;
		}
		bytes = search.bytes;
	}
	return append(response, bytes, length);
}

/* Holds output back. False, and nothing of it is held, if there is no room. */
static bool hold(baton_response *response, const char *bytes, size_t length)
{
	size_t used = response->used;
	unsigned names = response->names;

	if (is_held_for_long(response) || !append_output(response, bytes, length)) {
		response->used = used;
		response->names = names;
		return false;
	}
	return true;
}

static int on_send_headers(sapi_headers_struct *headers)
{
	baton_response *response = &BATON_G(response);

	if (!BATON_G(asked) || response->held || names_files_itself(headers)) {
		return server_send_headers(headers);
	}
	hold_head(response, headers);
	return SAPI_HEADER_SENT_SUCCESSFULLY;
}

static size_t on_write(const char *bytes, size_t length)
{
	baton_response *response = &BATON_G(response);

	if (response->held && !hold(response, bytes, length)) {
		release_plain(response);
	}
	return response->held ? length : server_write(bytes, length);
}

static void on_flush(void *context)
{
	if (BATON_G(response).held) {
		release_plain(&BATON_G(response));
	}
	server_flush(context);
}

/*
 * Whether the active output buffer is the only one, and that many bytes more would fill it, upon which it would be
 * passed on as it is: as php_output_handler_append() decides for the buffer that php.ini's output_buffering starts.
 */
static bool is_filled_by(const php_output_handler *only, size_t length)
{
	return !OG(running) && zend_stack_count(&OG(handlers)) == 1 && only->size > 0 && length >= only->size
		&& (only->flags & PHP_OUTPUT_HANDLER_FLUSHABLE)
		&& !(only->flags & (PHP_OUTPUT_HANDLER_USER | PHP_OUTPUT_HANDLER_DISABLED))
		&& zend_string_equals_literal(only->name, "default output handler");
}

/* echo: leads file strings around a buffer that would copy them only to pass them on. */
static size_t on_echo(const char *bytes, size_t length)
{
	php_output_handler *buffer = OG(active);

	if (!buffer || !BATON_G(asked) || !baton_shelf_at(&BATON_G(shelf), bytes, length)
			|| !is_filled_by(buffer, length)) {
		return php_echo(bytes, length);
	}
	/* What php_output_flush() does with the bytes that it finds in the buffer, here done with those that come next. */
	php_output_flush();
	zend_stack_del_top(&OG(handlers));
	OG(flags) |= PHP_OUTPUT_WRITTEN;
	size_t written = php_output_write(bytes, length);
	zend_stack_push(&OG(handlers), &buffer);
	return written;
}

void baton_response_hook(void)
{
	/* Others have no head to send, or no reader of it. */
	if (strcmp(sapi_module.name, "fpm-fcgi") && strcmp(sapi_module.name, "cgi-fcgi")) {
		return;
	}
	server_write = sapi_module.ub_write;
	server_flush = sapi_module.flush;
	server_send_headers = sapi_module.send_headers;
	php_echo = zend_write;
	sapi_module.ub_write = on_write;
	sapi_module.flush = on_flush;
	sapi_module.send_headers = on_send_headers;
	zend_write = on_echo;
}

bool baton_response_is_hooked(void)
{
	return sapi_module.ub_write == on_write;
}

void baton_response_unhook(void)
{
	if (baton_response_is_hooked()) {
		sapi_module.ub_write = server_write;
		sapi_module.flush = server_flush;
		sapi_module.send_headers = server_send_headers;
		zend_write = php_echo;
	}
}
