/*
 * The response: held back until the script has ended, so that its head can say where files are named in its body
 * (Suzumura et al., "Highly scalable Web applications with zero-copy data transfer", WWW 2009, section 3.2.2).
 *
 *     X-ZeroCopy: 5/10:20/10
 *
 *     hello/tmp/A.htmworld/tmp/B.htmbye
 *
 * What is held is text and names, never contents, and at most `baton.buffer` bytes. Beyond that, when the script wants
 * its output under way (flush()), or when it writes more a second after its first output, all that is held goes out as the plain response that it stands for, and the
 * rest follows directly. So a response is named as a whole, or it is what PHP alone would have sent.
 */
#ifndef BATON_RESPONSE_H
#define BATON_RESPONSE_H

#include "shelf.h"

/* Keeps the header below 8 KiB, which every server takes. */
#define BATON_NAMES_MAX 256

typedef struct {
	size_t offset; /* of the name in the body */
	baton_entry *entry;
} baton_span;

typedef struct {
	bool held;   /* PHP believes that the head is sent, and it is not */
	uint64_t held_since_ms;
	int status;  /* of the head when it was held, since scripts may still try to change it */
	char *status_line;
	char *body;  /* kept from one request to the next */
	size_t used;
	size_t room;
	unsigned names;
	baton_span spans[BATON_NAMES_MAX];
} baton_response;

/* Takes the place of the functions by which PHP gives its output to a FastCGI server. */
void baton_response_hook(void);
void baton_response_unhook(void);

/* Whether this PHP answers a server. */
bool baton_response_is_hooked(void);

void baton_response_begin(baton_response *response);
/* Sends what is held, if anything is. */
void baton_response_finish(baton_response *response);
void baton_response_free(baton_response *response);

#endif
