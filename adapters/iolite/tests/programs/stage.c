/* A part of a chain of programs.
 *
 * stage produce FROM BYTES [PIECE]   writes bytes FROM to FROM + BYTES of a pattern, in pieces of any size or of PIECE bytes
 * stage copy                         standard input to standard output
 * stage check [hoard|blind]          reads the pattern to the end; prints how many bytes, and how many of them were read by
 *                                    system calls; with "hoard" it keeps all aggregates, has a child that destroys its
 *                                    copies of some, and looks at all once more; with "blind" it looks at none
 * stage fork BYTES                   writes the pattern, and in a child, at the same time, to descriptor 3
 * stage stdio                        copies by the streams of stdio
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "iolite.h"

static void must(IOL_Err error, const char *what)
{
    if (error) {
        fprintf(stderr, "%s: %s\n", what, strerror(error));
        exit(1);
    }
}

static char pattern(size_t at) { return (char)((at * 2654435761u) >> 13); }

static void produce(int to, size_t from, size_t bytes, size_t piece)
{
    unsigned draw = 12345;
    while (bytes > 0) {
        draw = draw * 1103515245 + 12345;
        size_t count = piece ? piece : (draw >> 8) % ((draw >> 4) % 3 ? 200000 : 300) + 1, length, written;
        if (count > bytes)
            count = bytes;
        IOL_Agg *agg;
        IOL_Context *context;
        char *at;
        must(IOL_create(IOL_DEF_ALLOC, &agg, count), "create");
        must(IOL_gen_start(agg, &context), "start");
        while (must(IOL_gen_nextWr(context, &at, &length), "next"), length > 0)
            for (size_t i = 0; i < length; i++)
                at[i] = pattern(from++);
        must(IOL_gen_end(context), "end");
        must(IOL_write_destroy(to, &agg, &written), "write");
        bytes -= count;
    }
}

static void copy(void)
{
    IOL_Agg *agg;
    size_t count, written;
    while (must(IOL_read(0, &agg, 1 << 20, &count), "read"), count > 0)
        must(IOL_write_destroy(1, &agg, &written), "write");
    IOL_destroy(agg);
}

static size_t bytes_read(void)
{
    FILE *io = fopen("/proc/self/io", "r");
    size_t count = 0;
    if (!io || fscanf(io, "rchar: %zu", &count) != 1)
        exit(3);
    fclose(io);
    return count;
}

static size_t look(IOL_Agg *agg, size_t at)
{
    IOL_Context *context;
    const char *run;
    size_t length;
    must(IOL_gen_start(agg, &context), "start");
    while (must(IOL_gen_nextRd(context, &run, &length), "next"), length > 0)
        for (size_t i = 0; i < length; i++)
            if (run[i] != pattern(at++)) {
                fprintf(stderr, "another byte at %zu\n", at - 1);
                exit(1);
            }
    must(IOL_gen_end(context), "end");
    return at;
}

enum { KEPT_MAX = 4096, KEPT_BEFORE_FORK = 64 };

static void check(const char *how)
{
    static IOL_Agg *kept[KEPT_MAX];
    IOL_Agg *agg;
    size_t count, at = 0, before = bytes_read(), number = 0;
    int hoards = strcmp(how, "hoard") == 0, is_blind = strcmp(how, "blind") == 0;
    while (must(IOL_read(0, &agg, 65536, &count), "read"), count > 0) {
        at = is_blind ? at + count : look(agg, at);
        if (!hoards) {
            must(IOL_destroy(agg), "destroy");
            continue;
        }
        kept[number++] = agg;
        if (number == KEPT_BEFORE_FORK && fork() == 0) {
            for (size_t i = 0; i < number; i++)
                must(IOL_destroy(kept[i]), "destroy");
            _exit(0);
        }
        if (number == KEPT_BEFORE_FORK)
            wait(NULL);
    }
    IOL_destroy(agg);
    printf("%zu %zu\n", at, bytes_read() - before);
    at = 0;
    for (size_t i = 0; i < number; i++)
        at = look(kept[i], at);
}

int main(int count, char **words)
{
    const char *what = count > 1 ? words[1] : "";
    if (strcmp(what, "produce") == 0 && count > 3) {
        produce(1, strtoul(words[2], NULL, 10), strtoul(words[3], NULL, 10), count > 4 ? strtoul(words[4], NULL, 10) : 0);
    } else if (strcmp(what, "copy") == 0) {
        copy();
    } else if (strcmp(what, "check") == 0) {
        check(count > 2 ? words[2] : "");
    } else if (strcmp(what, "fork") == 0 && count > 2) {
        size_t bytes = strtoul(words[2], NULL, 10);
        produce(1, 0, 100000, 0);
        pid_t child = fork();
        if (child == 0) {
            produce(3, 0, bytes, 0);
            return 0;
        }
        produce(1, 100000, bytes, 0);
        waitpid(child, NULL, 0);
    } else if (strcmp(what, "stdio") == 0) {
        FILE *in = IOL_fdopen(0, "r"), *out = IOL_fdopen(1, "w");
        int c;
        while ((c = getc(in)) != EOF)
            putc(c, out);
        return fclose(out) != 0;
    } else {
        return 2;
    }
    return 0;
}
