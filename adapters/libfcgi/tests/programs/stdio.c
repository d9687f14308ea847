/* Uses the stdio layer: all of stdio.h by its ordinary names. Runs as FastCGI and as CGI. */
#include <fcgi_stdio.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static void listed(const char *format, ...) {
  va_list list;
  va_start(list, format);
  vprintf(format, list);
  va_end(list);
  va_start(list, format);
  vfprintf(stdout, format, list);
  va_end(list);
}

int main(void) {
  static char block[300000];
  for (size_t i = 0; i < sizeof block; i++) block[i] = "0123456789\n"[i % 11];
  int requests = 0;
  while (FCGI_Accept() >= 0) {
    char line[64], *query = getenv("QUERY_STRING");
    size_t n;
    int c;
    requests++;
    printf("Content-Type: text/plain\r\n");
    printf("X-Request: %d\r\n\r\n", requests);
    printf("%s %d %ld %.3f %g %c%%\n", query ? query : "-", 42, -7L, 1.0 / 3, 1e30, 'x');
    fprintf(stdout, "%5s|%-5s|%05d|%x\n", "a", "b", 42, 255);
    listed("%d and %f and %s\n", 1, 2.5, "three");
    puts("puts");
    fputs("fputs\n", stdout);
    putchar('p');
    putc('c', stdout);
    fputc('\n', stdout);

    c = getchar();
    if (c != EOF) {
      ungetc(c, stdin);
      printf("first %c\n", getc(stdin));
    }
    if (fgets(line, sizeof line, stdin)) printf("line %s", line);
    while ((n = fread(line, 1, sizeof line, stdin)) > 0) fwrite(line, 1, n, stdout);
    printf("\neof %d error %d read %d\n", feof(stdin) != 0, ferror(stdin), (int)fread(line, 2, 4, stdin));
    clearerr(stdin);

    n = fwrite(block, 1000, query ? strlen(query) * 20 : 0, stdout);
    printf("written %d %d\n", (int)n, (int)fwrite(block, 0, 9, stdout));
    if (getenv("REQUESTS_ARE_FILES") == NULL) printf("seek %d %d\n", fseek(stdout, 0, SEEK_SET), errno == ESPIPE);

    /* Files of the program beside the request's. */
    char name[] = "/tmp/libfcgi-test-XXXXXX";
    int fd = mkstemp(name);
    FILE *file = fdopen(fd, "w+");
    fprintf(file, "in a file %d\n", 5);
    fflush(file);
    rewind(file);
    printf("file %s", fgets(line, sizeof line, file));
    printf("position %ld, descriptor %d\n", (long)ftell(file), fileno(file) == fd);
    fseek(file, 3, SEEK_SET);
    fpos_t position;
    fgetpos(file, &position);
    c = fgetc(file);
    fsetpos(file, &position);
    printf("again %d\n", c == fgetc(file));
    fclose(file);
    unlink(name);
    FILE *pipe = popen("echo from a child", "r");
    if (pipe && fgets(line, sizeof line, pipe)) printf("%s", line);
    printf("child %d\n", pclose(pipe));
    FILE *scratch = tmpfile();
    printf("scratch %d\n", scratch != NULL && fclose(scratch) == 0);
    printf("missing %d\n", fopen("/does/not/exist", "r") == NULL);

    fprintf(stderr, "a message %d\n", requests);
    errno = ENOENT;
    perror("why");
    fflush(stderr);
    fflush(stdout);
    FCGI_SetExitStatus(requests);
  }
  return requests == 0;
}
