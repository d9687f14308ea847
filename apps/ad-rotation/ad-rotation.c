/* A page with an advertisement that changes from visit to visit: a FastCGI program for measurements, in the style of
 * SPECweb99's "custom ad rotation", written against libfcgi.
 *
 *   GET ...?bytes=N a page of N bytes (32 KiB if not given, at most 8 MiB), with the next advertisement in every
 *   slot. A cookie remembers the last one. The page is made in memory and sent with one call, as fast programs do.
 *   GET ...?bytes=N&type=image/png the same bytes, as something of another type.
 *   GET ...?in-place=N the same page, made where the library sends it from. GET ...?named the file that AD_FILE names
 *   in the environment, by X-Sendfile: none of its bytes come here.
 *
 * Build: cc -O2 -o ad-rotation ad-rotation.c -lfcgi     (with -I adapters/libfcgi/include)
 * Run:   spawn-fcgi -s /run/ad.sock -F 8 -- ./ad-rotation
 */
#include <fcgi_in_place.h>
#include <fcgiapp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_MAX = 8 << 20, PAGE_DEFAULT = 32 << 10, PLACES_EVERY = 4096, FIRST_PLACE = 512, ADS = 360 };

static const char text[] =
    "<p>The keeper winds the clockwork at dusk, trims the lamp and writes the weather into his book.</p>\n";

/* A page of so many bytes, with the same advertisement at all its places. */
struct page {
    const char *blank;
    size_t bytes;
    char ad[64];
    size_t ad_bytes;
};

/* The page without advertisements. */
static void fill(char *page) {
    for (size_t at = 0; at < PAGE_MAX; at++) page[at] = text[at % (sizeof text - 1)];
}

/* The advertisement that follows the one that this visitor saw last. */
static unsigned next_ad(const char *cookies) {
    const char *last = cookies ? strstr(cookies, "last_ad=") : NULL;
    return ((last ? (unsigned)strtoul(last + 8, NULL, 10) : 0) + 1) % ADS;
}

/* Writes the bytes of a page from `from` to `to` to `memory`: a slot may cross either end. */
static void make(const struct page *page, size_t from, size_t to, char *memory) {
    memcpy(memory, page->blank + from, to - from);
    size_t first = from < FIRST_PLACE ? 0 : (from - FIRST_PLACE) / PLACES_EVERY;
    for (size_t at = FIRST_PLACE + first * PLACES_EVERY; at < to && at + page->ad_bytes <= page->bytes; at += PLACES_EVERY) {
        size_t start = at > from ? at : from, end = at + page->ad_bytes < to ? at + page->ad_bytes : to;
        if (start < end) memcpy(memory + (start - from), page->ad + (start - at), end - start);
    }
}

/* Makes a page where the library sends it from, as far as there is room at a time. */
static void make_in_place(const struct page *page, FCGX_Stream *out) {
    char *window;
    size_t room;
    for (size_t at = 0; at < page->bytes && (window = fcgi_window(out, &room)); at += room) {
        if (room > page->bytes - at) room = page->bytes - at;
        make(page, at, at + room, window);
        fcgi_written(out, room);
    }
}

int main(void) {
    char *blank = malloc(PAGE_MAX), *made = malloc(PAGE_MAX);
    const char *file = getenv("AD_FILE");
    FCGX_Request request;
    if (!blank || !made || FCGX_Init() || FCGX_InitRequest(&request, 0, 0)) return 1;
    fill(blank);

    while (FCGX_Accept_r(&request) == 0) {
        const char *query = FCGX_GetParam("QUERY_STRING", request.envp);
        if (!query) query = "";
        if (file && strcmp(query, "named") == 0) {
            FCGX_FPrintF(request.out, "Content-Type: text/html\r\nX-Sendfile: %s\r\n\r\n", file);
        } else {
            unsigned ad = next_ad(FCGX_GetParam("HTTP_COOKIE", request.envp));
            int in_place = strncmp(query, "in-place=", 9) == 0;
            struct page page = {.blank = blank, .bytes = PAGE_DEFAULT};
            if (in_place || strncmp(query, "bytes=", 6) == 0) page.bytes = strtoul(strchr(query, '=') + 1, NULL, 10);
            if (page.bytes > PAGE_MAX) page.bytes = PAGE_MAX;
            const char *type = strstr(query, "&type=");
            page.ad_bytes = (size_t)snprintf(page.ad, sizeof page.ad, "<a href=\"/ads/%03u\"><img src=\"/ads/%03u.gif\"></a>", ad, ad);
            FCGX_FPrintF(request.out,
                         "Content-Type: %s\r\nContent-Length: %lu\r\nSet-Cookie: last_ad=%03u\r\n\r\n",
                         type ? type + strlen("&type=") : "text/html", (unsigned long)page.bytes, ad);
            if (in_place) {
                make_in_place(&page, request.out);
            } else {
                make(&page, 0, page.bytes, made);
                FCGX_PutStr(made, (int)page.bytes, request.out);
            }
        }
        FCGX_Finish_r(&request);
    }
    return 0;
}
