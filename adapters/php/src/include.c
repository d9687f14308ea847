/*
 * include of static text: a file in which PHP finds nothing to run is put out as the file string that it is.
 *
 * The compiler is asked for a script of one echo, whose literal is then replaced by the file string: everything that
 * happens around an include (scope, return value, list of included files) stays PHP's affair.
 */
#include "php_baton.h"

#include "php_streams.h"
#include "zend_compile.h"

static zend_op_array *(*php_compile_file)(zend_file_handle *handle, int type);

/* Scripts by name: not worth a system call to find out that they hold code. */
static bool is_script_by_name(const zend_string *path)
{
	size_t length = ZSTR_LEN(path);

	return length >= 4 && !memcmp(ZSTR_VAL(path) + length - 4, ".php", 4);
}

/* Any "<?" is taken for code, whether short tags are on or not. */
static bool is_text(baton_entry *entry)
{
	if (entry->code == CODE_UNKNOWN) {
		entry->code = memmem(ZSTR_VAL(entry->text), ZSTR_LEN(entry->text), "<?", 2) ? CODE_MAYBE : CODE_NONE;
	}
	return entry->code == CODE_NONE;
}

/* The entry of a file to be included, and the path by which PHP remembers that it was. */
static baton_entry *text_of(zend_file_handle *handle, zend_string **resolved)
{
	*resolved = NULL;
	/* include_once has opened the file already, unless OPcache spares it that. */
	bool is_named = handle->type == ZEND_HANDLE_FILENAME || (handle->type == ZEND_HANDLE_STREAM && handle->opened_path);
	if (!BATON_G(asked) || !is_named || handle->primary_script || !handle->filename
			|| is_script_by_name(handle->filename) || CG(multibyte)) {
		return NULL;
	}
	*resolved = handle->opened_path ? zend_string_copy(handle->opened_path) : zend_resolve_path(handle->filename);
	baton_entry *entry = *resolved ? baton_file(*resolved) : NULL;
	return entry && is_text(entry) ? entry : NULL;
}

static zend_op_array *compile_echo(zend_string *filename)
{
	zend_string *source = zend_string_init(ZEND_STRL("echo 'x'; return 1;"), 0);
#if PHP_VERSION_ID >= 80200
	zend_op_array *script = zend_compile_string(source, ZSTR_VAL(filename), ZEND_COMPILE_POSITION_AFTER_OPEN_TAG);
#else
	zend_op_array *script = zend_compile_string(source, ZSTR_VAL(filename));
#endif

	zend_string_release(source);
	return script;
}

/* Replaces what the only echo of a script puts out. */
static bool replace_output(zend_op_array *script, zend_string *text)
{
	for (zend_op *op = script->opcodes; op < script->opcodes + script->last; op++) {
		if (op->opcode == ZEND_ECHO && op->op1_type == IS_CONST) {
			zval *literal = RT_CONSTANT(op, op->op1);
			zval_ptr_dtor_nogc(literal);
			ZVAL_STR_COPY(literal, text);
			return true;
		}
	}
	return false;
}

static zend_op_array *on_compile_file(zend_file_handle *handle, int type)
{
	zend_string *resolved;
	baton_entry *entry = text_of(handle, &resolved);
	zend_op_array *script = entry ? compile_echo(resolved) : NULL;

	if (script && !replace_output(script, entry->text)) {
		destroy_op_array(script);
		efree(script);
		script = NULL;
	}
	if (script) {
		script->type = ZEND_USER_FUNCTION;
		zend_hash_add_empty_element(&EG(included_files), resolved);
	}
	if (resolved) {
		zend_string_release(resolved);
	}
	return script ? script : php_compile_file(handle, type);
}

void baton_include_hook(void)
{
	if (!php_compile_file) {
		php_compile_file = zend_compile_file;
		zend_compile_file = on_compile_file;
	}
}

void baton_include_unhook(void)
{
	if (zend_compile_file == on_compile_file) {
		zend_compile_file = php_compile_file;
	}
}
