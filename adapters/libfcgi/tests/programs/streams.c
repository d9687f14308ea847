/* Uses every function of the FCGX interface, and prints the results. The first argument is the number of
 * threads that accept. QUERY_STRING, a letter and a number, selects the action. */
#include <fcgi_in_place.h>
#include <fcgiapp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *text;
enum { TEXT = 8 << 20 };

static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void head(FCGX_Request *r, long length) {
  FCGX_PutS("Content-Type: text/plain\r\n", r->out);
  if (length >= 0) FCGX_FPrintF(r->out, "Content-Length: %ld\r\n", length);
  FCGX_PutS("\r\n", r->out);
}

/* The variables, sorted, and other properties of the request. */
static void environment(FCGX_Request *r) {
  char *sorted[256];
  int n = 0;
  for (char **at = r->envp; *at && n < 256; at++) sorted[n++] = *at;
  qsort(sorted, n, sizeof *sorted, compare);
  head(r, -1);
  for (int i = 0; i < n; i++) FCGX_FPrintF(r->out, "%s\n", sorted[i]);
  const char *none = FCGX_GetParam("NONE", r->envp), *prefix = FCGX_GetParam("QUERY_STRIN", r->envp);
  FCGX_FPrintF(r->out, "role %d, id %d, none %s, prefix %s\n", r->role, r->requestId, none ? none : "-",
               prefix ? prefix : "-");
}

/* The body, by turns with each function that reads. `other`: what is put back in the place of what was read; 0: the same. */
static void echo(FCGX_Request *r, int other) {
  char buffer[700];
  int c, n;
  head(r, -1);
  while ((c = FCGX_GetChar(r->in)) != -1) {
    int back = other ? other : c;
    if (FCGX_UnGetChar(back, r->in) != back) FCGX_PutS("no pushback", r->out);
    if (FCGX_GetChar(r->in) != back) FCGX_PutS("other pushback", r->out);
    FCGX_PutChar(c, r->out);
    n = FCGX_GetStr(buffer, 500, r->in);
    FCGX_PutStr(buffer, n, r->out);
    if (FCGX_GetLine(buffer, sizeof buffer, r->in)) FCGX_PutS(buffer, r->out);
  }
  FCGX_FPrintF(r->out, "\nend %d, error %d", FCGX_HasSeenEOF(r->in), FCGX_GetError(r->in));
  if (other) FCGX_FPrintF(r->out, ", again %d\n", FCGX_GetStr(buffer, 1, r->in));
}

/* The body where it lies, in parts of growing size; or how often no other byte could be put back. */
static void look(FCGX_Request *r, int tries) {
  const char *part;
  size_t bytes, most = 1;
  int tried = 0, refused = 0;
  head(r, -1);
  for (; (part = fcgi_body(r->in, &bytes)); most = most * 2 + 1) {
    if (bytes > most) bytes = most;
    if (!tries) FCGX_PutStr(part, (int)bytes, r->out);
    int other = (unsigned char)part[bytes - 1] ^ 1;
    fcgi_taken(r->in, bytes);
    if (tries) {
      tried++;
      if (FCGX_UnGetChar(other, r->in) == -1) refused++;
      else FCGX_GetChar(r->in);
    }
  }
  FCGX_FPrintF(r->out, "\nend %d, error %d", FCGX_HasSeenEOF(r->in), FCGX_GetError(r->in));
  if (tries) FCGX_FPrintF(r->out, "\nrefused %d of %d", refused, tried);
}

/* Each kind of conversion, and lengths on both sides of the buffers. */
static void formats(FCGX_Request *r) {
  int count = 0, n = 0;
  head(r, -1);
  n += FCGX_FPrintF(r->out, "%d %5d %-5d| %05d %+d %i %u %o %x %X %#x\n", -1, 2, 3, 4, 5, -6, 7u, 8, 9, 10, 11);
  n += FCGX_FPrintF(r->out, "%ld %lu %lx %hd %hu %c %%\n", -1L, ~0UL, 255L, (short)-3, (unsigned short)-1, 'c');
  n += FCGX_FPrintF(r->out, "%s|%10s|%-10s|%.2s|%*s|%.*s\n", "text", "right", "left", "cut", 6, "star", 3, "starcut");
  n += FCGX_FPrintF(r->out, "%f %.2f %10.3f %e %E %g %G %.0f\n", 3.25, 2.0 / 3, -1e3, 12345.678, 1e-9, 1e20, 1e-5, 0.5);
  n += FCGX_FPrintF(r->out, "%Lf %.1Lf %s %d %f %s %d %f %d %f %d %f\n", 1.5L, 2.5L, "mixed", 1, 1.0, "many", 2, 2.0, 3,
                    3.0, 4, 4.0);
  n += FCGX_FPrintF(r->out, "count%n\n", &count);
  n += FCGX_FPrintF(r->out, "%.20000f %s\n", 1.0 / 3, text + TEXT - 70000);
  FCGX_FPrintF(r->out, "%d %d\n", n, count);
}

static void answer(FCGX_Request *r) {
  const char *query = FCGX_GetParam("QUERY_STRING", r->envp);
  long number = query && *query ? strtol(query + 1, NULL, 10) : 0;
  if (number > TEXT) number = TEXT;
  FCGX_SetExitStatus(0, r->out); /* the original remembers that of the request before */
  switch (query ? *query : 0) {
    case 'e': environment(r); break;
    case 'b': echo(r, '<'); break;
    case 'g': echo(r, 0); break;
    case 'v': look(r, number > 0); break;
    case 'f': formats(r); break;
    case 'l': /* a length is declared, and one call writes the body */
      head(r, number);
      FCGX_PutStr(text, number, r->out);
      break;
    case 'u': /* no length; pieces of growing size */
      head(r, -1);
      for (long at = 0, piece = 1; at < number; at += piece, piece = piece * 2 + 1) {
        if (piece > number - at) piece = number - at;
        FCGX_PutStr(text + at, piece, r->out);
      }
      break;
    case 'c': /* characters, and a flush now and then */
      head(r, -1);
      for (long at = 0; at < number; at++) {
        FCGX_PutChar(text[at], r->out);
        if (at % 10000 == 5000) FCGX_FFlush(r->out);
      }
      break;
    case 'p': /* characters and nothing else */
      head(r, -1);
      for (long at = 0; at < number; at++) FCGX_PutChar(text[at], r->out);
      break;
    case 'i': /* a length is declared, and the body made in place, in windows of all sizes */
      head(r, number);
      {
        char *window;
        size_t room, most = 1;
        for (long at = 0; at < number && (window = fcgi_window(r->out, &room)); at += room, most = most * 2 + 1) {
          if (room > most) room = most;
          if (room > (size_t)(number - at)) room = number - at;
          memcpy(window, text + at, room);
          fcgi_written(r->out, room);
        }
      }
      break;
    case 'o': /* slow output, a few kilobytes in small pieces, until the body says to go on */
      head(r, -1);
      for (int i = 0; i < 3; i++) {
        usleep(600000);
        for (long at = 0; at < number; at += 100) FCGX_PutStr(text + at, 100, r->out);
        if (FCGX_GetChar(r->in) == -1) break;
      }
      break;
    case 's': /* an exit status, and messages longer than their buffer */
      head(r, -1);
      for (int i = 0; i < number; i++) FCGX_FPrintF(r->err, "message %d\n", i);
      FCGX_FFlush(r->err);
      FCGX_PutS("status\n", r->out);
      FCGX_SetExitStatus((int)number, r->out);
      FCGX_PutS("last message\n", r->err);
      break;
    case 'x': /* closes its output itself; what follows is lost */
      head(r, -1);
      FCGX_PutStr(text, number, r->out);
      FCGX_FClose(r->out);
      FCGX_PutS("too late", r->out);
      break;
    case 'w': /* a writer of its own beside the request: one more record of standard output */
      head(r, -1);
      FCGX_PutS("before ", r->out);
      FCGX_FFlush(r->out);
      {
        FCGX_Stream *writer = FCGX_CreateWriter(r->ipcFd, r->requestId, 64, 6);
        FCGX_PutStr(text, number, writer);
        FCGX_FFlush(writer);
        FCGX_FreeStream(&writer);
      }
      FCGX_PutS(" after", r->out);
      break;
    case 'd': /* another process answers; here the connection is only closed */
      FCGX_Detach(r);
      if (fork() == 0) {
        FCGX_Attach(r);
        head(r, -1);
        /* The other process has closed it by now. */
        usleep(50000);
        FCGX_PutStr(text, number, r->out);
        FCGX_Finish_r(r);
        _exit(0);
      }
      FCGX_Free(r, 1);
      break;
    case 'h': /* a process that goes on for long holds the connection, too */
      if (fork() == 0) {
        sleep(60);
        _exit(0);
      }
      head(r, -1);
      break;
    case 'r': /* the role of a filter, or not */
      head(r, -1);
      while (FCGX_GetChar(r->in) != -1) {}
      FCGX_FPrintF(r->out, "filter data %d", FCGX_StartFilterData(r->in));
      break;
    case 'q': FCGX_ShutdownPending(); /* fall through */
    default: FCGX_PutS("Status: 404 Not Found\r\nX-Empty:\r\n\r\n", r->out);
  }
}

static void *accepts(void *socket) {
  FCGX_Request r;
  FCGX_InitRequest(&r, *(int *)socket, 0);
  while (FCGX_Accept_r(&r) == 0) {
    answer(&r);
    FCGX_Finish_r(&r);
  }
  FCGX_Free(&r, 1);
  return NULL;
}

int main(int count, char **words) {
  int threads = count > 1 ? atoi(words[1]) : 1, socket = 0;
  pthread_t ids[64];
  text = malloc(TEXT + 1);
  for (int i = 0; i < TEXT; i++) text[i] = "abcdefghijklmnopqrstuvwxyz\n"[(i + i / 1000) % 27];
  text[TEXT] = 0;
  FCGX_Request early;
  FCGX_InitRequest(&early, 0, 0);
  if (FCGX_Accept_r(&early) != -9998) return 2;
  if (FCGX_Init() || FCGX_IsCGI()) return 3;
  if (count > 2 && (socket = FCGX_OpenSocket(words[2], 100)) < 0) return 4;
  for (int i = 1; i < threads && i < 64; i++) pthread_create(&ids[i], NULL, accepts, &socket);
  accepts(&socket);
  return 0;
}
