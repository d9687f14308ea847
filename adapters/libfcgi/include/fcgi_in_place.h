/* Responses made where they will be sent from, and bodies read where the server has them: the windows of streams.
 *
 *     size_t room;
 *     char *window = fcgi_window(request.out, &room);
 *     size_t written = make_some_of_the_page(window, room);
 *     fcgi_written(request.out, written);
 *
 * Behind Baton, by `shm`, the window lies in the memory that the server sends from; by the other ways, in one buffer that
 * is used again and again, and stays in the caches of the processor. With the distribution's libfcgi it is the stream's
 * buffer of 8 KB. What lies in a window is sent when the window is full, at the end, or by `FCGX_FFlush`, which a page that
 * takes seconds to make should call.
 *
 *     size_t bytes;
 *     const char *part;
 *     while ((part = fcgi_body(request.in, &bytes))) {
 *         use(part, bytes);
 *         fcgi_taken(request.in, bytes);
 *     }
 *
 * Behind Baton, a part of a long body lies in the server's memory or in a file of the server's, which this program can read
 * and not write. Only fields are used that `fcgiapp.h` declares, so that a program runs with either library.
 */
#ifndef FCGI_IN_PLACE_H
#define FCGI_IN_PLACE_H

#include <fcgiapp.h>
#include <stddef.h>

/* Where the next bytes of a response can be written, and how many there (`room`, in bytes, at least one). NULL: the
 * stream has ended, since it was closed, the client is gone, or the connection to the server is (`FCGX_GetError`). The
 * window is good until the stream is used in any other way. */
static inline char *fcgi_window(FCGX_Stream *out, size_t *room) {
    if (out->isReader || out->isClosed) return NULL;
    if (out->wrNext == out->stop) {
        out->emptyBuffProc(out, 0);
        if (out->isClosed || out->wrNext == out->stop) return NULL;
    }
    *room = (size_t)(out->stop - out->wrNext);
    return (char *)out->wrNext;
}

/* The first `bytes` bytes of the window have been written: not more than there was room for. */
static inline void fcgi_written(FCGX_Stream *out, size_t bytes) {
    out->wrNext += bytes;
}

/* The next bytes of a request's body, and how many (`bytes`, at least one). NULL: the body has ended, or fails
 * (`FCGX_GetError`). They are there until the stream is used in any other way than by `fcgi_taken`. */
static inline const char *fcgi_body(FCGX_Stream *in, size_t *bytes) {
    if (!in->isReader || in->isClosed) return NULL;
    if (in->rdNext == in->stop) {
        in->fillBuffProc(in);
        if (in->isClosed || in->rdNext == in->stop) return NULL;
        in->stopUnget = in->rdNext;
    }
    *bytes = (size_t)(in->stop - in->rdNext);
    return (const char *)in->rdNext;
}

/* The program has used the first `bytes` bytes: not more than there were. */
static inline void fcgi_taken(FCGX_Stream *in, size_t bytes) {
    in->rdNext += bytes;
}

#endif
