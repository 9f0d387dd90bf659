/* The files that a thread waits for: each readable once there is something to do. Blocking; any thread, without the
 * interpreter's lock. */
#ifndef PYSTORM_WAIT_FILES_H
#define PYSTORM_WAIT_FILES_H

#include <poll.h>
#include <stdint.h>
#include <unistd.h>

typedef struct pollfd ps_file;

/* `fd` below 0: none. */
static inline ps_file ps_file_of(int fd) {
    ps_file file = {fd, POLLIN, 0};
    return file;
}

/* How many are readable after `millis` at most, below 0: for ever; -1 where a signal came, or by errno. */
static inline int ps_files_wait(ps_file *files, uint64_t count, int millis) {
    return poll(files, (nfds_t)count, millis);
}

/* An eventfd, non-blocking: it is not readable any more. */
static inline void ps_file_empty(int fd) {
    uint64_t rings;
    if (read(fd, &rings, sizeof rings) < 0) { /* another one has read it */
    }
}

#endif
