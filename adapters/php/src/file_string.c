/* Files as strings: see file_string.h. */
#include "file_string.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define HEADER_BYTES offsetof(zend_string, val)

static size_t page_bytes(void)
{
	static size_t bytes;

	if (!bytes) {
		bytes = (size_t) sysconf(_SC_PAGESIZE);
	}
	return bytes;
}

/* Of the header's page, the pages of the file, and a page for the NUL if it has no place behind the file's end. */
static size_t region_bytes(size_t size)
{
	size_t page = page_bytes();

	return page + (size / page + 1) * page;
}

static char *region_of(zend_string *string)
{
	return ZSTR_VAL(string) - page_bytes();
}

zend_string *baton_file_string_map(int fd, size_t size)
{
	size_t page = page_bytes();
	char *region = mmap(NULL, region_bytes(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (region == MAP_FAILED) {
		return NULL;
	}
	/* Read-only: who writes into a string that others refer to gets a fault instead of corrupting what is sent. */
	if (mmap(region + page, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED) {
		munmap(region, region_bytes(size));
		return NULL;
	}

	zend_string *string = (zend_string *) (region + page - HEADER_BYTES);
	GC_SET_REFCOUNT(string, 1);
	GC_TYPE_INFO(string) = GC_STRING;
	ZSTR_H(string) = 0;
	ZSTR_LEN(string) = size;
	return string;
}

void baton_file_string_unmap(zend_string *string)
{
	munmap(region_of(string), region_bytes(ZSTR_LEN(string)));
}

bool baton_may_be_file_string(const char *bytes)
{
	return ((uintptr_t) bytes & (page_bytes() - 1)) == 0;
}
