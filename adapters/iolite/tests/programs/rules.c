/* The rules of IO-Lite's appendix A, one function each. Prints the name of each rule that holds; stops at one that does not. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "iolite.h"

#define CHECK(what) do { if (!(what)) { fprintf(stderr, "line %d: %s\n", __LINE__, #what); exit(1); } } while (0)
#define OK(call) CHECK((call) == 0)

/* An aggregate with these bytes, in pieces of at most `piece`. */
static IOL_Agg *of(const char *text, size_t piece)
{
    IOL_Agg *all, *next, *both;
    OK(IOL_create(IOL_DEF_ALLOC, &all, 0));
    for (size_t left = strlen(text); left > 0; text += piece, left -= piece) {
        if (piece > left)
            piece = left;
        IOL_Context *context;
        char *at;
        size_t length;
        OK(IOL_create(IOL_DEF_ALLOC, &next, piece));
        OK(IOL_gen_start(next, &context));
        OK(IOL_gen_nextWr(context, &at, &length));
        CHECK(length == piece);
        memcpy(at, text, piece);
        OK(IOL_gen_end(context));
        OK(IOL_concat(&both, all, next));
        OK(IOL_destroy(all));
        OK(IOL_destroy(next));
        all = both;
    }
    return all;
}

/* Whether these are its bytes; destroys it. */
static int is(IOL_Agg *agg, const char *text)
{
    IOL_Context *context;
    const char *at;
    size_t length, count = strlen(text), seen = 0;
    int same = IOL_length(agg) == count;
    OK(IOL_gen_start(agg, &context));
    for (;;) {
        OK(IOL_gen_nextRd(context, &at, &length));
        if (length == 0)
            break;
        same = same && seen + length <= count && memcmp(at, text + seen, length) == 0;
        seen += length;
    }
    OK(IOL_gen_end(context));
    OK(IOL_destroy(agg));
    return same && seen == count;
}

static void destroy_waits_for_contexts(void)
{
    IOL_Agg *agg = of("waiting", 3), *other;
    IOL_Context *first, *second;
    const char *at;
    size_t length;
    OK(IOL_gen_start(agg, &first));
    OK(IOL_destroy(agg));
    CHECK(IOL_gen_start(agg, &second) == EINVAL);
    CHECK(IOL_duplicate(&other, agg) == EINVAL);
    CHECK(IOL_concat(&other, agg, agg) == EINVAL);
    CHECK(IOL_write(1, agg, &length) == EINVAL);
    CHECK(IOL_destroy(agg) == EINVAL);
    OK(IOL_gen_nextRd(first, &at, &length));
    CHECK(length == 3 && memcmp(at, "wai", 3) == 0);
    OK(IOL_gen_end(first));
}

static void split_at_its_ends(void)
{
    IOL_Agg *agg = of("abcdef", 2), *first, *rest;
    struct { size_t at; const char *first, *rest; } cases[] = {
        { 0, "", "abcdef" }, { 1, "a", "bcdef" }, { 2, "ab", "cdef" }, { 5, "abcde", "f" }, { 6, "abcdef", "" }, { 99, "abcdef", "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OK(IOL_split(&first, &rest, agg, cases[i].at));
        CHECK(is(first, cases[i].first) && is(rest, cases[i].rest));
    }
    CHECK(is(agg, "abcdef"));
}

static void select_is_cut_off(void)
{
    IOL_Agg *agg = of("abcdef", 4), *part = NULL;
    OK(IOL_select(&part, agg, 3, 2));
    CHECK(is(part, "de"));
    OK(IOL_select(&part, agg, 3, 99));
    CHECK(is(part, "def"));
    CHECK(IOL_select(&part, agg, 6, 1) == EINVAL);
    CHECK(is(agg, "abcdef"));
}

static void vectors_and_duplicates(void)
{
    IOL_Agg *one = of("abcdef", 4), *other = of("xyz", 1), *all;
    IOL_Vec parts[] = { { one, 1, 2 }, { other, 0, 3 }, { one, 5, 9 } };
    OK(IOL_create_from_vec(&all, parts, 3));
    CHECK(is(all, "bcxyzf"));
    parts[1].start = 3;
    CHECK(IOL_create_from_vec(&all, parts, 3) == EINVAL);
    OK(IOL_duplicate(&all, one));
    OK(IOL_destroy(one));
    CHECK(is(all, "abcdef") && is(other, "xyz"));
}

static void only_fresh_aggregates_are_written(void)
{
    IOL_Agg *agg, *copy;
    IOL_Context *context;
    char *at;
    const char *read;
    size_t length, total = 0;
    OK(IOL_create(IOL_DEF_ALLOC, &agg, 200000));
    OK(IOL_gen_start(agg, &context));
    for (;;) {
        OK(IOL_gen_nextWr(context, &at, &length));
        if (length == 0)
            break;
        memset(at, 'w', length);
        total += length;
    }
    CHECK(total == 200000 && IOL_length(agg) == 200000);
    OK(IOL_gen_seek(context, 100000));
    OK(IOL_gen_nextRd(context, &read, &length));
    CHECK(length > 0 && *read == 'w');
    OK(IOL_duplicate(&copy, agg));
    OK(IOL_gen_seek(context, 0));
    CHECK(IOL_gen_nextWr(context, &at, &length) == EPERM);
    OK(IOL_gen_nextRd(context, &read, &length));
    OK(IOL_gen_end(context));
    OK(IOL_gen_start(copy, &context));
    CHECK(IOL_gen_nextWr(context, &at, &length) == EPERM);
    OK(IOL_gen_end(context));
    OK(IOL_destroy(agg));
    OK(IOL_destroy(copy));
}

static void contexts_seek_and_tell(void)
{
    IOL_Agg *agg = of("abcdefgh", 3);
    IOL_Context *context;
    const char *at;
    size_t length;
    long position;
    OK(IOL_gen_start(agg, &context));
    OK(IOL_gen_seek(context, 4));
    OK(IOL_gen_nextRd(context, &at, &length));
    CHECK(length == 2 && memcmp(at, "ef", 2) == 0);
    OK(IOL_gen_tell(context, &position));
    CHECK(position == 6);
    OK(IOL_gen_seek(context, 8));
    OK(IOL_gen_nextRd(context, &at, &length));
    CHECK(length == 0);
    CHECK(IOL_gen_seek(context, 9) == EINVAL && IOL_gen_seek(context, -1) == EINVAL);
    OK(IOL_gen_end(context));
    OK(IOL_destroy(agg));
}

static void a_short_write_keeps_the_aggregate(void)
{
    int ends[2];
    size_t written;
    IOL_Agg *agg;
    OK(pipe(ends));
    OK(fcntl(ends[1], F_SETFL, O_NONBLOCK));
    OK(IOL_create(IOL_DEF_ALLOC, &agg, 1 << 20));
    OK(IOL_write_destroy(ends[1], &agg, &written));
    CHECK(written > 0 && written < 1 << 20 && agg && IOL_length(agg) == 1 << 20);
    CHECK(IOL_write_destroy(ends[1], &agg, &written) == EAGAIN && written == 0);
    OK(IOL_destroy(agg));
    OK(IOL_close(ends[0]));
    OK(IOL_close(ends[1]));
    OK(pipe(ends));
    agg = of("whole", 5);
    OK(IOL_write_destroy(ends[1], &agg, &written));
    CHECK(written == 5 && agg == NULL);
    OK(IOL_read(ends[0], &agg, 3, &written));
    CHECK(written == 3 && is(agg, "who"));
    OK(IOL_read(ends[0], &agg, 3, &written));
    CHECK(written == 2 && is(agg, "le"));
    OK(IOL_close(ends[1]));
    OK(IOL_read(ends[0], &agg, 3, &written));
    CHECK(written == 0 && is(agg, ""));
    OK(IOL_close(ends[0]));
}

enum { WRITES = 20, WRITTEN = 100000 };

struct writes {
    int to;
    char with;
};

static void *write_all(void *given)
{
    struct writes *writes = given;
    char *text = malloc(WRITTEN + 1);
    memset(text, writes->with, WRITTEN);
    text[WRITTEN] = 0;
    for (int i = 0; i < WRITES; i++) {
        size_t written;
        IOL_Agg *agg = of(text, 30000);
        OK(IOL_write_destroy(writes->to, &agg, &written));
        CHECK(written == WRITTEN);
    }
    free(text);
    return NULL;
}

/* Writes of two threads to one descriptor are whole, whichever is first. More than a pipe holds, and by bytes, which the kernel would mix. */
static void writes_exclude_each_other(void)
{
    int ends[2];
    pthread_t threads[2];
    char at = 0;
    size_t run = 0, left = 2 * (size_t)WRITES * WRITTEN;
    OK(pipe(ends));
    OK(IOL_control(ends[1], IOL_BYTES));
    struct writes writes[] = { { ends[1], 'a' }, { ends[1], 'b' } };
    for (int i = 0; i < 2; i++)
        OK(pthread_create(&threads[i], NULL, write_all, &writes[i]));
    while (left > 0) {
        char bytes[4096];
        ssize_t count = read(ends[0], bytes, sizeof bytes);
        CHECK(count > 0);
        left -= (size_t)count;
        for (ssize_t i = 0; i < count; i++, run++)
            if (bytes[i] != at) {
                CHECK(run % WRITTEN == 0);
                at = bytes[i];
            }
    }
    for (int i = 0; i < 2; i++)
        OK(pthread_join(threads[i], NULL));
    OK(IOL_close(ends[0]));
    OK(IOL_close(ends[1]));
}

static void ranges_of_a_file(void)
{
    char path[] = "/tmp/iolite-XXXXXX", *memory;
    int file = mkstemp(path);
    IOL_Agg *agg, *part;
    size_t count;
    CHECK(file >= 0);
    OK(unlink(path));
    OK(ftruncate(file, 20000));
    memory = MAP_FAILED;
    void *at = NULL;
    OK(IOL_mmap(&at, 20000, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    memory = at;
    memset(memory, 'f', 20000);
    memcpy(memory + 9998, "stored", 6);
    /* All stores in front of the call are seen. */
    OK(IOL_read(file, &agg, 10000, &count));
    CHECK(count == 10000 && lseek(file, 0, SEEK_CUR) == 10000);
    OK(IOL_select(&part, agg, 9997, 3));
    CHECK(is(part, "fst"));
    OK(IOL_destroy(agg));
    OK(IOL_read(file, &agg, 4, &count));
    CHECK(is(agg, "ored"));
    OK(IOL_read(file, &agg, 1 << 20, &count));
    CHECK(count == 9996);
    OK(IOL_destroy(agg));
    OK(IOL_read(file, &agg, 1 << 20, &count));
    CHECK(count == 0 && is(agg, ""));
    /* A write supersedes what was stored; loads behind it see all of it, and stores behind it win. */
    OK(lseek(file, 0, SEEK_SET));
    agg = of("written", 2);
    OK(IOL_write_destroy(file, &agg, &count));
    CHECK(memcmp(memory, "writtenf", 8) == 0);
    memory[0] = 'W';
    OK(lseek(file, 0, SEEK_SET));
    OK(IOL_read(file, &agg, 8, &count));
    CHECK(is(agg, "Writtenf"));
    munmap(memory, 20000);
    OK(IOL_close(file));
}

/* What was looked at stays; what was not is an error if the file ends in front of it. */
static void ranges_outlive_their_file(void)
{
    char path[] = "/tmp/iolite-XXXXXX";
    int file = mkstemp(path);
    IOL_Agg *seen, *unseen;
    IOL_Context *context;
    const char *at;
    size_t count;
    CHECK(file >= 0);
    OK(unlink(path));
    OK(ftruncate(file, 40000));
    OK(IOL_read(file, &seen, 20000, &count));
    OK(IOL_read(file, &unseen, 20000, &count));
    OK(IOL_gen_start(seen, &context));
    OK(IOL_gen_nextRd(context, &at, &count));
    CHECK(count > 0);
    OK(ftruncate(file, 0));
    for (size_t left = 20000; left > 0; left -= count) {
        for (size_t i = 0; i < count; i++)
            CHECK(at[i] == 0);
        if (left > count)
            OK(IOL_gen_nextRd(context, &at, &count));
    }
    OK(IOL_gen_end(context));
    OK(IOL_destroy(seen));
    OK(IOL_gen_start(unseen, &context));
    CHECK(IOL_gen_nextRd(context, &at, &count) == EIO);
    OK(IOL_gen_end(context));
    OK(IOL_destroy(unseen));
    OK(IOL_close(file));
}

/* How many bytes are in a pipe after 64 KiB were written to it. */
static int in_pipe(int ends[2])
{
    IOL_Agg *agg;
    size_t written;
    int bytes;
    OK(IOL_create(IOL_DEF_ALLOC, &agg, 65536));
    OK(IOL_write_destroy(ends[1], &agg, &written));
    CHECK(written == 65536);
    OK(ioctl(ends[0], FIONREAD, &bytes));
    for (size_t left = 65536; left > 0; left -= written) {
        OK(IOL_read(ends[0], &agg, left, &written));
        CHECK(written > 0);
        OK(IOL_destroy(agg));
    }
    return bytes;
}

static void references_can_be_refused(void)
{
    int ends[2];
    IOL_Agg *agg;
    size_t written;
    for (int refusing = -1; refusing < 2; refusing++) {
        OK(pipe(ends));
        if (refusing >= 0)
            OK(IOL_control(ends[refusing], IOL_BYTES));
        agg = of("x", 1);
        OK(IOL_write_destroy(ends[1], &agg, &written));
        OK(IOL_read(ends[0], &agg, 1, &written));
        CHECK(is(agg, "x"));
        CHECK(in_pipe(ends) == (refusing < 0 ? 2048 : 65536));
        OK(IOL_close(ends[0]));
        OK(IOL_close(ends[1]));
    }
}

static void allocators_and_misuse(void)
{
    IOL_Allocator *allocator;
    IOL_Agg *agg;
    IOL_Context *context;
    char *at;
    size_t length;
    OK(IOL_create_allocator(&allocator, NULL));
    OK(IOL_create(allocator, &agg, 5));
    OK(IOL_destroy_allocator(allocator));
    OK(IOL_gen_start(agg, &context));
    OK(IOL_gen_nextWr(context, &at, &length));
    memcpy(at, "stays", 5);
    OK(IOL_gen_end(context));
    CHECK(is(agg, "stays"));
    CHECK(IOL_destroy_allocator(IOL_DEF_ALLOC) == EINVAL);
    CHECK(IOL_destroy(NULL) == EINVAL && IOL_length(NULL) == 0 && IOL_gen_end(NULL) == EINVAL);
    CHECK(IOL_read(-1, &agg, 1, &length) == EBADF && IOL_control(1, 77) == EINVAL && IOL_fdopen(0, "rw") == NULL);
}

int main(void)
{
#define RULE(name) { #name, name }
    static const struct { const char *name; void (*holds)(void); } rules[] = {
        RULE(destroy_waits_for_contexts), RULE(split_at_its_ends), RULE(select_is_cut_off), RULE(vectors_and_duplicates),
        RULE(only_fresh_aggregates_are_written), RULE(contexts_seek_and_tell), RULE(a_short_write_keeps_the_aggregate), RULE(writes_exclude_each_other),
        RULE(ranges_of_a_file), RULE(ranges_outlive_their_file), RULE(references_can_be_refused), RULE(allocators_and_misuse),
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        rules[i].holds();
        puts(rules[i].name);
    }
    return 0;
}
