/* A page with an advertisement that changes from visit to visit: a FastCGI program for measurements, in the style of
 * SPECweb99's "custom ad rotation", written against libfcgi.
 *
 *   GET ...?bytes=N   a page of N bytes (32 KiB if not given, at most 8 MiB), with the next advertisement at every
 *                     place for one. Which one was last is told by a cookie.
 *   GET ...?named     the file that AD_FILE names in the environment, by X-Sendfile: none of its bytes come here.
 *
 * The page is made in memory and put out with one call, as programs do that look after their speed.
 *
 * Build: cc -O2 -o ad-rotation ad-rotation.c -lfcgi
 * Run:   spawn-fcgi -s /run/ad.sock -F 8 -- ./ad-rotation
 */
#include <fcgiapp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_MAX = 8 << 20, PAGE_DEFAULT = 32 << 10, PLACES_EVERY = 4096, FIRST_PLACE = 512, ADS = 360 };

static const char text[] =
    "<p>The keeper winds the clockwork at dusk, trims the lamp and writes the weather into his book.</p>\n";

/* The page without advertisements. */
static void fill(char *page) {
    for (size_t at = 0; at < PAGE_MAX; at++) page[at] = text[at % (sizeof text - 1)];
}

/* The advertisement that follows the one that this visitor saw last. */
static unsigned next_ad(const char *cookies) {
    const char *last = cookies ? strstr(cookies, "last_ad=") : NULL;
    return ((last ? (unsigned)strtoul(last + 8, NULL, 10) : 0) + 1) % ADS;
}

/* Puts it at all its places. Every advertisement is as long as any other. */
static void place(char *page, size_t bytes, unsigned ad) {
    char link[64];
    int length = snprintf(link, sizeof link, "<a href=\"/ads/%03u\"><img src=\"/ads/%03u.gif\"></a>", ad, ad);
    for (size_t at = FIRST_PLACE; at + (size_t)length <= bytes; at += PLACES_EVERY) memcpy(page + at, link, (size_t)length);
}

int main(void) {
    char *blank = malloc(PAGE_MAX), *page = malloc(PAGE_MAX);
    const char *file = getenv("AD_FILE");
    FCGX_Request request;
    if (!blank || !page || FCGX_Init() || FCGX_InitRequest(&request, 0, 0)) return 1;
    fill(blank);

    while (FCGX_Accept_r(&request) == 0) {
        const char *query = FCGX_GetParam("QUERY_STRING", request.envp);
        unsigned ad = next_ad(FCGX_GetParam("HTTP_COOKIE", request.envp));
        size_t bytes = PAGE_DEFAULT;
        if (query && file && strcmp(query, "named") == 0) {
            FCGX_FPrintF(request.out, "Content-Type: text/html\r\nX-Sendfile: %s\r\n\r\n", file);
        } else {
            if (query && strncmp(query, "bytes=", 6) == 0) bytes = strtoul(query + 6, NULL, 10);
            if (bytes > PAGE_MAX) bytes = PAGE_MAX;
            memcpy(page, blank, bytes);
            place(page, bytes, ad);
            FCGX_FPrintF(request.out,
                         "Content-Type: text/html\r\nContent-Length: %lu\r\nSet-Cookie: last_ad=%03u\r\n\r\n",
                         (unsigned long)bytes, ad);
            FCGX_PutStr(page, (int)bytes, request.out);
        }
        FCGX_Finish_r(&request);
    }
    return 0;
}
