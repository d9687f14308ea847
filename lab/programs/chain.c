/* A program of a chain, in two ways: with read(2) and write(2), or with the calls of IO-Lite.
 *
 * usage: chain plain|references wc             counts lines, words and bytes of standard input
 *                               cat            copies it to standard output
 *                               grep WORD      counts lines with WORD; a line that is split among runs is copied together
 *                               permute N      writes all permutations of N words of 4 letters
 *                               compile N      translates text by stdio, with N rounds of work for each byte
 *
 * At its end it says on standard error how many bytes its system calls have read and written.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "iolite.h"

enum { PIECE = 65536, READ_MAX = 4 << 20, WORD = 4, WORDS_MAX = 12 };

static int by_references;

static void must(int succeeded, const char *what)
{
    if (!succeeded) {
        perror(what);
        exit(1);
    }
}

static void write_all(const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t written = write(1, bytes, count);
        must(written > 0, "write");
        bytes += written;
        count -= written;
    }
}

/* Calls `use` with each run of standard input. */
static void each_run(void (*use)(const char *, size_t))
{
    static char buffer[PIECE];
    size_t count;
    if (!by_references) {
        for (ssize_t got; (got = read(0, buffer, PIECE)) != 0;) {
            must(got > 0, "read");
            use(buffer, got);
        }
        return;
    }
    for (;;) {
        IOL_Agg *agg;
        IOL_Context *context;
        const char *run;
        size_t length;
        must(IOL_read(0, &agg, READ_MAX, &count) == 0, "IOL_read");
        must(IOL_gen_start(agg, &context) == 0, "IOL_gen_start");
        while (IOL_gen_nextRd(context, &run, &length) == 0 && length > 0)
            use(run, length);
        IOL_gen_end(context);
        IOL_destroy(agg);
        if (count == 0)
            return;
    }
}

static size_t lines, words, bytes;
static int in_word;

static void count_run(const char *run, size_t length)
{
    bytes += length;
    for (size_t i = 0; i < length; i++) {
        int space = run[i] == ' ' || (run[i] >= '\t' && run[i] <= '\r');
        lines += run[i] == '\n';
        words += in_word && space;
        in_word = !space;
    }
}

static void cat(void)
{
    static char buffer[PIECE];
    size_t count, written;
    if (!by_references) {
        for (ssize_t got; (got = read(0, buffer, PIECE)) > 0;)
            write_all(buffer, got);
        return;
    }
    for (;;) {
        IOL_Agg *agg;
        must(IOL_read(0, &agg, READ_MAX, &count) == 0, "IOL_read");
        must(IOL_write_destroy(1, &agg, &written) == 0, "IOL_write");
        if (count == 0)
            return;
    }
}

static const char *wanted;
static char *line;
static size_t line_bytes, line_room;

static void begin_line(const char *text, size_t length)
{
    if (line_bytes + length > line_room)
        must((line = realloc(line, line_room = 2 * (line_bytes + length))) != NULL, "memory");
    memcpy(line + line_bytes, text, length);
    line_bytes += length;
}

static void grep_run(const char *run, size_t length)
{
    size_t wanted_bytes = strlen(wanted);
    const char *end = run + length, *newline;
    for (; (newline = memchr(run, '\n', end - run)) != NULL; run = newline + 1) {
        if (line_bytes > 0) {
            begin_line(run, newline - run);
            lines += memmem(line, line_bytes, wanted, wanted_bytes) != NULL;
            line_bytes = 0;
        } else {
            lines += memmem(run, newline - run, wanted, wanted_bytes) != NULL;
        }
    }
    begin_line(run, end - run);
}

static char piece[PIECE];
static char *out = piece;
static size_t out_room = PIECE;
static IOL_Agg *filled;

static void flush(void)
{
    size_t count = PIECE - out_room, written;
    IOL_Agg *part;
    IOL_Context *context;
    if (!by_references) {
        write_all(piece, count);
        out = piece;
        out_room = PIECE;
        return;
    }
    if (filled && count > 0) {
        must(IOL_select(&part, filled, 0, count) == 0, "IOL_select");
        must(IOL_write_destroy(1, &part, &written) == 0, "IOL_write");
    }
    if (filled)
        IOL_destroy(filled);
    must(IOL_create(IOL_DEF_ALLOC, &filled, PIECE) == 0, "IOL_create");
    must(IOL_gen_start(filled, &context) == 0, "IOL_gen_start");
    must(IOL_gen_nextWr(context, &out, &out_room) == 0, "IOL_gen_nextWr");
    IOL_gen_end(context);
}

static void put_words(const char (*all)[WORD], int count)
{
    for (int i = 0; i < count; i++) {
        if (out_room < WORD)
            flush();
        memcpy(out, all[i], WORD);
        out += WORD;
        out_room -= WORD;
    }
}

static void permute(char (*all)[WORD], int fixed, int count)
{
    if (fixed == count) {
        put_words((const char (*)[WORD])all, count);
        return;
    }
    for (int i = fixed; i < count; i++) {
        char kept[WORD];
        memcpy(kept, all[fixed], WORD), memcpy(all[fixed], all[i], WORD), memcpy(all[i], kept, WORD);
        permute(all, fixed + 1, count);
        memcpy(kept, all[fixed], WORD), memcpy(all[fixed], all[i], WORD), memcpy(all[i], kept, WORD);
    }
}

static void compile(int rounds)
{
    FILE *in = by_references ? IOL_fdopen(0, "r") : stdin, *to = by_references ? IOL_fdopen(1, "w") : stdout;
    must(in && to, "stdio");
    for (int c; (c = getc(in)) != EOF;) {
        unsigned work = c;
        for (int i = 0; i < rounds; i++)
            work = work * 1103515245 + 12345;
        /* The same text: what matters is that it depends on the work. */
        putc(work == 1 ? '?' : c, to);
    }
    must(fflush(to) == 0, "stdio");
}

static void say_bytes(void)
{
    size_t read, written;
    FILE *io = fopen("/proc/self/io", "r");
    must(io && fscanf(io, "rchar: %zu wchar: %zu", &read, &written) == 2, "/proc/self/io");
    fprintf(stderr, "%zu\n", read + written);
}

int main(int count, char **argument)
{
    const char *what = count > 2 ? argument[2] : "";
    by_references = count > 1 && strcmp(argument[1], "references") == 0;
    if (strcmp(what, "wc") == 0) {
        each_run(count_run);
        printf("%zu %zu %zu\n", lines, words + in_word, bytes);
    } else if (strcmp(what, "cat") == 0) {
        cat();
    } else if (strcmp(what, "grep") == 0 && count > 3) {
        wanted = argument[3];
        each_run(grep_run);
        printf("%zu\n", lines);
    } else if (strcmp(what, "permute") == 0 && count > 3) {
        char all[WORDS_MAX][WORD];
        int number = atoi(argument[3]) < WORDS_MAX ? atoi(argument[3]) : WORDS_MAX;
        for (int i = 0; i < number; i++)
            memcpy(all[i], (char[]){ 'a' + i, 'b', 'c', ' ' }, WORD);
        if (by_references)
            out_room = PIECE, flush();
        permute(all, 0, number);
        flush();
    } else if (strcmp(what, "compile") == 0 && count > 3) {
        compile(atoi(argument[3]));
    } else {
        fprintf(stderr, "usage: chain plain|references wc|cat|grep WORD|permute N|compile N\n");
        return 2;
    }
    say_bytes();
    return 0;
}
