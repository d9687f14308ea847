/* IO-Lite's calls (V. S. Pai, 1999, appendix A): programs that both use them pass bytes to each other by reference.
 *
 * Link with -lbaton_iolite. Calls return 0 or a number of errno.h. See iolite(3).
 */
#ifndef IOLITE_H
#define IOLITE_H

#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int IOL_Err;

/* A pool of memory with one set of readers: each program that is sent some of it may read all of it. */
typedef struct IOL_Allocator IOL_Allocator;
typedef struct IOL_Specs IOL_Specs; /* reserved: pass NULL */
#define IOL_DEF_ALLOC ((IOL_Allocator *)0)

/* An ordered list of immutable bytes. One thread at a time may use one, or its contexts. */
typedef struct IOL_Agg IOL_Agg;
/* A traversal of an aggregate. */
typedef struct IOL_Context IOL_Context;

/* A range of an aggregate. */
typedef struct IOL_Vec {
    IOL_Agg *aggregate;
    size_t start;
    size_t length;
} IOL_Vec;

IOL_Err IOL_create_allocator(IOL_Allocator **allocator, IOL_Specs *impl_extra);
/* Buffers of the pool stay. EINVAL for IOL_DEF_ALLOC. */
IOL_Err IOL_destroy_allocator(IOL_Allocator *allocator);

/* A new aggregate with unspecified contents, to be written by IOL_gen_nextWr. */
IOL_Err IOL_create(IOL_Allocator *allocator, IOL_Agg **aggregate, size_t size);
/* With open contexts it takes place at the end of the last; until then every other use of the aggregate is EINVAL. */
IOL_Err IOL_destroy(IOL_Agg *aggregate);

/* These make new aggregates over the same bytes. They end the writing of their sources. */
IOL_Err IOL_concat(IOL_Agg **dst, IOL_Agg *src1, IOL_Agg *src2);
IOL_Err IOL_split(IOL_Agg **dst1, IOL_Agg **dst2, IOL_Agg *src, size_t length);
/* EINVAL if `start` is not less than the length; a range beyond the end is cut off. */
IOL_Err IOL_select(IOL_Agg **dst, IOL_Agg *src, size_t start, size_t length);
IOL_Err IOL_create_from_vec(IOL_Agg **dst, IOL_Vec *vec, int numItems);
IOL_Err IOL_duplicate(IOL_Agg **dst, IOL_Agg *src);
size_t IOL_length(IOL_Agg *src);

IOL_Err IOL_gen_start(IOL_Agg *src, IOL_Context **ctxt);
/* The next run of bytes, valid as long as the aggregate; at the end *length is 0. Ranges of files are read here, all of the
 * aggregate at once: EIO if a file was cut off. */
IOL_Err IOL_gen_nextRd(IOL_Context *ctxt, const char **addr, size_t *length);
/* EPERM unless the aggregate is fresh from IOL_create. */
IOL_Err IOL_gen_nextWr(IOL_Context *ctxt, char **addr, size_t *length);
IOL_Err IOL_gen_end(IOL_Context *ctxt);
/* EINVAL beyond the end. */
IOL_Err IOL_gen_seek(IOL_Context *ctxt, long pos);
IOL_Err IOL_gen_tell(IOL_Context *ctxt, long *pos);

/* At most `size` bytes as a new aggregate: of length 0 at the end. Of a file: ranges of it, of 256 KiB at most, which show
 * later stores until a traversal comes to them. Nothing else may read from a pipe or socket that this has read from. */
IOL_Err IOL_read(int fd, IOL_Agg **aggregate, size_t size, size_t *retSize);
IOL_Err IOL_write(int fd, IOL_Agg *aggregate, size_t *retSize);
/* Destroys the aggregate if all of it was written. */
IOL_Err IOL_write_destroy(int fd, IOL_Agg **aggregate, size_t *retSize);
IOL_Err IOL_write_vec(int fd, IOL_Vec *vec, int numItems, size_t *retSize);

/* mmap(2). */
IOL_Err IOL_mmap(void **addr, size_t len, int prot, int flags, int fd, size_t off);

#define IOL_BYTES 1 /* neither send nor take references */
/* Call it before the first IOL_read and IOL_write. */
IOL_Err IOL_control(int fd, int flags);

/* Not in the source: close(2), and all that is known of the descriptor. */
IOL_Err IOL_close(int fd);
/* Not in the source: fdopen(3), for mode "r" or "w", over these calls. It saves the copies between programs alone. */
FILE *IOL_fdopen(int fd, const char *mode);

#ifdef __cplusplus
}
#endif
#endif
