/*
 * A file as a zend_string: the header at the end of a page of memory, the pages of the file behind it.
 *
 *        page of memory            pages of the file, read-only            one more page, if the file ends with a page
 *     ┌──────────────────────┬──────────────────────┬──────────────────┐ ┌──────────────────────┐
 *     │ ······· refcount,    │ val[0] …             │ … val[len-1]│0000│ │ val[len] = 0 …       │
 *     │         hash, length │                      │                  │ │                      │
 *     └──────────────────────┴──────────────────────┴──────────────────┘ └──────────────────────┘
 *
 * Nothing is read before access to the bytes: strlen() needs only the header.
 *
 * The memory is not the Zend memory manager's, so the reference count must never reach zero. The maker keeps a
 * reference as long as any script may hold the string, and it is that reference, too, which makes every attempt to
 * change the string in place a change of a copy.
 */
#ifndef BATON_FILE_STRING_H
#define BATON_FILE_STRING_H

#include "php.h"

/* The first `size` bytes (at least one) of an open file, which must never become shorter. NULL if memory is short. */
zend_string *baton_file_string_map(int fd, size_t size);

/* Unmaps the memory. No reference to the string may be left, whatever its count is. */
void baton_file_string_unmap(zend_string *string);

/* Whether bytes may be those of a file string; false for almost all others. */
bool baton_may_be_file_string(const char *bytes);

#endif
