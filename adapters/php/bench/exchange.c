/*
 * One FastCGI exchange after the other, as a server would do them: the request over a kept Unix connection, the answer
 * to a TCP client on this machine. What is named is opened and sent with sendfile, what is not is copied through. Tells
 * the time of the fastest batch, in microseconds per exchange.
 *
 *     exchange SOCKET SCRIPT ROOTS|- BATCHES
 *
 * Client, server and (by the caller's affinity) the application share a CPU, so that the time is the work of all three;
 * the client discards what it receives without copying it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { BEGIN_REQUEST = 1, END_REQUEST = 3, PARAMS = 4, STDIN = 5, STDOUT = 6 };
enum { RECORD_MAX = 65535 + 255, BATCH = 100 };

static char request[4096], answer[64 << 20], record[RECORD_MAX];
static size_t request_length;
static int out, client;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void put_record(int type, const char *content, size_t length)
{
	unsigned char header[8] = {1, (unsigned char) type, 0, 1, (unsigned char) (length >> 8), (unsigned char) length};

	memcpy(request + request_length, header, 8);
	memcpy(request + request_length + 8, content, length);
	request_length += 8 + length;
}

static size_t put_parameter(char *at, const char *name, const char *value)
{
	return (size_t) sprintf(at, "%c%c%s%s", (int) strlen(name), (int) strlen(value), name, value);
}

static void make_request(const char *script, const char *roots)
{
	char parameters[2048];
	size_t length = put_parameter(parameters, "SCRIPT_FILENAME", script);

	length += put_parameter(parameters + length, "REQUEST_METHOD", "GET");
	if (strcmp(roots, "-")) {
		length += put_parameter(parameters + length, "BATON_ZEROCOPY", roots);
	}
	put_record(BEGIN_REQUEST, "\0\1\1\0\0\0\0\0", 8); /* responder, keep the connection */
	put_record(PARAMS, parameters, length);
	put_record(PARAMS, "", 0);
	put_record(STDIN, "", 0);
}

static void receive(int from, char *into, size_t length)
{
	while (length > 0) {
		ssize_t got = read(from, into, length);
		if (got <= 0) {
			die("read");
		}
		into += got;
		length -= (size_t) got;
	}
}

/* The client takes what there is, and looks at nothing. */
static void drain(void)
{
	while (recv(client, NULL, 8 << 20, MSG_TRUNC | MSG_DONTWAIT) > 0) {
	}
}

static void send_bytes(const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t sent = send(out, bytes, length, MSG_DONTWAIT);
		if (sent < 0 && errno != EAGAIN) {
			die("send");
		}
		if (sent > 0) {
			bytes += sent;
			length -= (size_t) sent;
		}
		drain();
	}
}

static void send_file(const char *name, size_t name_length)
{
	char path[1024] = {0};
	struct stat status;
	off_t position = 0;

	memcpy(path, name, name_length);
	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0 || fstat(file, &status) != 0) {
		die(path);
	}
	while (position < status.st_size) {
		if (sendfile(out, file, &position, (size_t) (status.st_size - position)) < 0 && errno != EAGAIN) {
			die("sendfile");
		}
		drain();
	}
	close(file);
}

static size_t read_answer(int application)
{
	size_t length = 0;

	for (;;) {
		unsigned char header[8];
		receive(application, (char *) header, 8);
		size_t content = (size_t) header[4] << 8 | header[5];
		if (header[1] == STDOUT) {
			receive(application, answer + length, content);
			receive(application, record, header[6]);
			length += content;
		} else {
			receive(application, record, content + header[6]);
			if (header[1] == END_REQUEST) {
				answer[length] = '\0';
				return length;
			}
		}
	}
}

static void exchange(int application)
{
	if (write(application, request, request_length) != (ssize_t) request_length) {
		die("write");
	}
	size_t length = read_answer(application);
	char *body = strstr(answer, "\r\n\r\n") + 4;
	char *names = memmem(answer, (size_t) (body - answer), "X-ZeroCopy: ", 12);
	size_t position = 0, offset, name_length;

	for (names = names ? names + 11 : NULL; names && *names != '\r'; ) {
		offset = strtoul(names + 1, &names, 10);
		name_length = strtoul(names + 1, &names, 10);
		send_bytes(body + position, offset - position);
		send_file(body + offset, name_length);
		position = offset + name_length;
	}
	send_bytes(body + position, length - (size_t) (body - answer) - position);
	drain();
}

static void connect_client(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);

	client = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *) &address, size) || listen(listener, 1)
			|| getsockname(listener, (struct sockaddr *) &address, &size)
			|| connect(client, (struct sockaddr *) &address, size) || (out = accept(listener, NULL, NULL)) < 0) {
		die("client");
	}
	setsockopt(out, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	close(listener);
}

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec * 1e6 + (double) now.tv_nsec / 1e3;
}

int main(int count, char **arguments)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	double best = 0;

	if (count != 5) {
		fprintf(stderr, "usage: exchange SOCKET SCRIPT ROOTS|- BATCHES\n");
		return 2;
	}
	snprintf(address.sun_path, sizeof address.sun_path, "%s", arguments[1]);
	int application = socket(AF_UNIX, SOCK_STREAM, 0);
	if (connect(application, (struct sockaddr *) &address, sizeof address) != 0) {
		die(arguments[1]);
	}
	connect_client();
	make_request(arguments[2], arguments[3]);
	for (int batch = 0; batch < atoi(arguments[4]); batch++) {
		double start = now_us();
		for (int i = 0; i < BATCH; i++) {
			exchange(application);
		}
		double spent = (now_us() - start) / BATCH;
		best = best == 0 || spent < best ? spent : best;
	}
	printf("%.1f\n", best);
	return 0;
}
