/* A page that is generated in memory for each request, and sent in one of six ways.
 *
 * usage: generated-page WAY IP PORT      WAY: copy, recycled, fresh, splice, zerocopy, ring
 *
 * GET /generated/BYTES answers with so many equal letters, of which each response has the next. A thread serves a connection.
 * A buffer may be written again when its client asks again on the same connection: it has read the page then. Nothing that
 * the kernel reports says so earlier, which is why a server that does not wait for the client cannot reuse pages like this.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <linux/io_uring.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE_MAX = 16 << 20, HEAD_MAX = 4096, PIPE_BYTES = 1 << 20 };

struct connection {
    int socket;
    char *page;      /* of PAGE_MAX bytes */
    int file;        /* that `page` maps, for `recycled` */
    int pipe[2];     /* for `splice` */
    int ring;        /* for `ring` */
    void *queues;
    struct io_uring_params parameters;
    struct io_uring_sqe *entries;
};

static char *way;

static int is_way(const char *name) { return strcmp(way, name) == 0; }

static void must(int succeeded, const char *what)
{
    if (!succeeded) {
        perror(what);
        exit(1);
    }
}

/* All of these return 0 when the client has gone. */

static int send_all(int socket, const char *bytes, size_t count, int flags)
{
    while (count > 0) {
        ssize_t sent = send(socket, bytes, count, flags);
        if (sent <= 0)
            return 0;
        bytes += sent;
        count -= sent;
    }
    return 1;
}

static int send_file(int socket, int file, size_t count)
{
    off_t offset = 0;
    while ((size_t)offset < count)
        if (sendfile(socket, file, &offset, count - offset) <= 0)
            return 0;
    return 1;
}

static int send_fresh(int socket, char letter, size_t count)
{
    int file = memfd_create("page", MFD_CLOEXEC);
    must(file >= 0 && ftruncate(file, count) == 0, "memfd");
    char *page = mmap(NULL, count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    must(page != MAP_FAILED, "mmap");
    memset(page, letter, count);
    munmap(page, count);
    int sent = send_file(socket, file, count);
    close(file);
    return sent;
}

static int send_spliced(struct connection *c, size_t count)
{
    char *bytes = c->page;
    while (count > 0) {
        struct iovec vector = { bytes, count };
        ssize_t in_pipe = vmsplice(c->pipe[1], &vector, 1, 0);
        if (in_pipe <= 0)
            return 0;
        bytes += in_pipe;
        count -= in_pipe;
        while (in_pipe > 0) {
            ssize_t sent = splice(c->pipe[0], NULL, c->socket, NULL, in_pipe, count > 0 ? SPLICE_F_MORE : 0);
            if (sent <= 0)
                return 0;
            in_pipe -= sent;
        }
    }
    return 1;
}

/* Sends, and takes the notice of each call: until then the kernel may read the page. */
static int send_zero_copy(int socket, const char *bytes, size_t count)
{
    unsigned calls = 0, completed = 0;
    while (count > 0) {
        ssize_t sent = send(socket, bytes, count, MSG_ZEROCOPY);
        if (sent < 0 && errno == ENOBUFS)
            sent = send(socket, bytes, count, 0);
        else
            calls++;
        if (sent <= 0)
            return 0;
        bytes += sent;
        count -= sent;
    }
    while (completed < calls) {
        struct pollfd wanted = { .fd = socket };
        char control[256];
        struct msghdr message = { .msg_control = control, .msg_controllen = sizeof control };
        if (recvmsg(socket, &message, MSG_ERRQUEUE) < 0) {
            if (errno != EAGAIN || poll(&wanted, 1, 10000) <= 0)
                return 0;
            continue;
        }
        for (struct cmsghdr *field = CMSG_FIRSTHDR(&message); field; field = CMSG_NXTHDR(&message, field)) {
            struct sock_extended_err *notice = (void *)CMSG_DATA(field);
            if (notice->ee_origin == SO_EE_ORIGIN_ZEROCOPY)
                completed += notice->ee_data - notice->ee_info + 1;
        }
    }
    return 1;
}

static void make_ring(struct connection *c)
{
    struct io_uring_params *p = &c->parameters;
    c->ring = syscall(SYS_io_uring_setup, 4, p);
    must(c->ring >= 0, "io_uring");
    size_t queues = p->sq_off.array + p->sq_entries * sizeof(unsigned);
    size_t completions = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
    int flags = MAP_SHARED | MAP_POPULATE;
    c->queues = mmap(NULL, queues > completions ? queues : completions, PROT_READ | PROT_WRITE, flags, c->ring, IORING_OFF_SQ_RING);
    c->entries = mmap(NULL, p->sq_entries * sizeof *c->entries, PROT_READ | PROT_WRITE, flags, c->ring, IORING_OFF_SQES);
    must(c->queues != MAP_FAILED && c->entries != MAP_FAILED, "io_uring");
}

static unsigned *in_ring(struct connection *c, unsigned offset) { return (unsigned *)((char *)c->queues + offset); }

/* One IORING_OP_SEND_ZC at a time; it is over with its second completion, the notice. */
static int send_by_ring(struct connection *c, size_t count)
{
    const char *bytes = c->page;
    struct io_uring_params *p = &c->parameters;
    struct io_uring_cqe *completions = (void *)in_ring(c, p->cq_off.cqes);
    while (count > 0) {
        unsigned tail = *in_ring(c, p->sq_off.tail), slot = tail & *in_ring(c, p->sq_off.ring_mask);
        c->entries[slot] = (struct io_uring_sqe){ .opcode = IORING_OP_SEND_ZC, .fd = c->socket,
                                                   .addr = (unsigned long)bytes, .len = count };
        in_ring(c, p->sq_off.array)[slot] = slot;
        __atomic_store_n(in_ring(c, p->sq_off.tail), tail + 1, __ATOMIC_RELEASE);
        int submit = 1, is_over = 0;
        while (!is_over) {
            if (syscall(SYS_io_uring_enter, c->ring, submit, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0 && errno != EINTR)
                return 0;
            submit = 0;
            unsigned head = *in_ring(c, p->cq_off.head);
            for (; head != __atomic_load_n(in_ring(c, p->cq_off.tail), __ATOMIC_ACQUIRE); head++) {
                struct io_uring_cqe *done = &completions[head & *in_ring(c, p->cq_off.ring_mask)];
                if (!(done->flags & IORING_CQE_F_NOTIF)) {
                    if (done->res <= 0)
                        return 0;
                    bytes += done->res;
                    count -= done->res;
                }
                is_over |= !(done->flags & IORING_CQE_F_MORE);
            }
            __atomic_store_n(in_ring(c, p->cq_off.head), head, __ATOMIC_RELEASE);
        }
    }
    return 1;
}

static int answer(struct connection *c, char letter, size_t count)
{
    char head[256];
    int length = sprintf(head, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n\r\n", count);
    if (!send_all(c->socket, head, length, MSG_MORE))
        return 0;
    if (is_way("fresh"))
        return send_fresh(c->socket, letter, count);
    memset(c->page, letter, count);
    if (is_way("recycled"))
        return send_file(c->socket, c->file, count);
    if (is_way("splice"))
        return send_spliced(c, count);
    if (is_way("zerocopy"))
        return send_zero_copy(c->socket, c->page, count);
    if (is_way("ring"))
        return send_by_ring(c, count);
    return send_all(c->socket, c->page, count, 0);
}

static void prepare(struct connection *c)
{
    int one = 1, backing = MAP_PRIVATE | MAP_ANONYMOUS;
    setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->file = -1;
    if (is_way("recycled")) {
        c->file = memfd_create("page", MFD_CLOEXEC);
        must(c->file >= 0 && ftruncate(c->file, PAGE_MAX) == 0, "memfd");
        backing = MAP_SHARED;
    }
    c->page = mmap(NULL, PAGE_MAX, PROT_READ | PROT_WRITE, backing, c->file, 0);
    must(c->page != MAP_FAILED, "mmap");
    if (is_way("splice")) {
        must(pipe2(c->pipe, O_CLOEXEC) == 0, "pipe");
        fcntl(c->pipe[0], F_SETPIPE_SZ, PIPE_BYTES);
    }
    if (is_way("zerocopy"))
        must(setsockopt(c->socket, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one) == 0, "SO_ZEROCOPY");
    if (is_way("ring"))
        make_ring(c);
}

static void *serve(void *argument)
{
    struct connection c = { .socket = (int)(long)argument };
    char head[HEAD_MAX + 1];
    size_t have = 0;
    unsigned pages = 0;
    prepare(&c);
    for (;;) {
        ssize_t got = recv(c.socket, head + have, HEAD_MAX - have, 0);
        if (got <= 0)
            break;
        have += got;
        head[have] = 0;
        if (!strstr(head, "\r\n\r\n"))
            continue;
        size_t count = 0;
        if (sscanf(head, "GET /generated/%zu ", &count) != 1 || count == 0 || count > PAGE_MAX) {
            static const char refusal[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
            if (!send_all(c.socket, refusal, sizeof refusal - 1, 0))
                break;
        } else if (!answer(&c, 'a' + pages++ % 26, count)) {
            break;
        }
        have = 0;
    }
    munmap(c.page, PAGE_MAX);
    if (c.file >= 0)
        close(c.file);
    if (is_way("splice")) {
        close(c.pipe[0]);
        close(c.pipe[1]);
    }
    if (is_way("ring"))
        close(c.ring);
    close(c.socket);
    return NULL;
}

int main(int count, char **words)
{
    static const char *ways[] = { "copy", "recycled", "fresh", "splice", "zerocopy", "ring" };
    size_t known = 0;
    while (count == 4 && known < 6 && strcmp(words[1], ways[known]) != 0)
        known++;
    if (count != 4 || known == 6) {
        fprintf(stderr, "usage: generated-page copy|recycled|fresh|splice|zerocopy|ring IP PORT\n");
        return 2;
    }
    way = words[1];
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(atoi(words[3])) };
    must(inet_pton(AF_INET, words[2], &address.sin_addr) == 1, words[2]);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    must(bind(listener, (void *)&address, sizeof address) == 0 && listen(listener, 511) == 0, "listen");
    signal(SIGPIPE, SIG_IGN);
    for (;;) {
        int socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        must(socket >= 0 || errno == ECONNABORTED || errno == EINTR, "accept");
        if (socket < 0)
            continue;
        pthread_t thread;
        must(pthread_create(&thread, NULL, serve, (void *)(long)socket) == 0, "thread");
        pthread_detach(thread);
    }
}
