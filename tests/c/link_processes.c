/* Two processes, a ring of frames each way and a doorbell each: who finds nothing sleeps, and none sleeps for ever.
 *
 * With PYSTORM_LOST_RINGS the ringer looks whether the other one sleeps before its frame can be seen, as a processor may
 * that is not held to an order: one of them then sleeps for ever, and the deadline ends the program. */
#define _GNU_SOURCE
#include "cython_core/links/byte_ring.h"
#include "cython_core/links/doorbell.h"

#include "stress.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define ROUNDS 20000
#ifndef DEADLINE
#define DEADLINE 60
#endif
#define CAPACITY 256
#define PAYLOAD 64

typedef struct {
    ps_doorbell bell;
    unsigned char ring[sizeof(ps_byte_ring) + CAPACITY]; /* what this side reads */
} side;

typedef struct {
    side *own;
    side *there;
    int own_fd;
    int there_fd;
    ps_byte_writer writer;
    ps_byte_reader reader;
} end;

static end end_of(side *sides, const int *fds, int number) {
    end made = {&sides[number], &sides[1 - number], fds[number], fds[1 - number],
                ps_byte_writer_of(sides[1 - number].ring, CAPACITY), ps_byte_reader_of(sides[number].ring, CAPACITY)};
    return made;
}

static void sleep_until_rung(end *here) {
    struct pollfd waits = {here->own_fd, POLLIN, 0};
    uint64_t rings;
    while (poll(&waits, 1, -1) < 0) CHECK(errno == EINTR);
    CHECK(read(here->own_fd, &rings, sizeof rings) == sizeof rings || errno == EAGAIN);
}

static uint64_t take(end *here, uint64_t turns) {
    uint64_t length, number;
    uint32_t kind;
    const unsigned char *place;
    for (uint64_t i = 0; (place = ps_byte_peek(&here->reader, &length, &kind)) == NULL; i++) {
        if (i < turns) continue; /* so that sleeps begin at other moments from round to round */
        ps_doorbell_prepare(&here->own->bell, 1);
        place = ps_byte_peek(&here->reader, &length, &kind);
        if (place == NULL) sleep_until_rung(here);
        ps_doorbell_answer(&here->own->bell);
        if (place != NULL) break;
    }
    CHECK(length == PAYLOAD && kind == 3);
    memcpy(&number, place, sizeof number);
    for (uint64_t i = 0; i < PAYLOAD; i++) CHECK(place[i] == place[i % sizeof number]);
    ps_byte_release(&here->reader);
    return number;
}

static void give(end *here, uint64_t number) {
    unsigned char *place = ps_byte_claim(&here->writer, PAYLOAD);
    CHECK(place != NULL);
#ifdef PYSTORM_LOST_RINGS
    uint64_t seen = ps_load_acquire(&here->there->bell.state);
    usleep(20);
#else
    uint64_t seen = PS_BELL_SLEEPS;
#endif
    for (uint64_t i = 0; i < PAYLOAD; i += sizeof number) memcpy(place + i, &number, sizeof number);
    ps_byte_commit(&here->writer, PAYLOAD, 3);
    if (seen == PS_BELL_SLEEPS) ps_doorbell_ring(&here->there->bell, here->there_fd);
}

static side *sides_shared(void) {
    void *memory = mmap(NULL, 2 * sizeof(side), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static int ended_well(pid_t child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void nobody_sleeps_for_ever(void) {
    side *sides = sides_shared();
    int fds[2] = {eventfd(0, EFD_NONBLOCK), eventfd(0, EFD_NONBLOCK)};
    pid_t child = fork();
    CHECK(fds[0] >= 0 && fds[1] >= 0 && child >= 0);
    deadline(DEADLINE);
    end here = end_of(sides, fds, child == 0);
    unsigned long long seed = child == 0 ? 88172645463325252ULL : 7; /* each pauses for other spans before it sleeps */
    for (uint64_t n = 0; n < ROUNDS; n++) {
        if (child != 0) give(&here, n);
        CHECK(take(&here, check_random(&seed) % 256) == n);
        if (child == 0) give(&here, n);
    }
    if (child == 0) _exit(0);
    CHECK(ended_well(child));
    CHECK(munmap(sides, 2 * sizeof(side)) == 0);
}

/* A writer that is killed at any moment leaves whole frames only. */
static void a_killed_writer_leaves_whole_frames(unsigned long long seed) {
    for (int round = 0; round < 50; round++) {
        side *sides = sides_shared();
        int fds[2] = {-1, -1};
        pid_t child = fork();
        CHECK(child >= 0);
        end here = end_of(sides, fds, child == 0);
        deadline(DEADLINE); /* also for the child, which would go on for ever if this process were killed */
        if (child == 0) {
            for (uint64_t n = 0;; n++) {
                unsigned char *place;
                while ((place = ps_byte_claim(&here.writer, n % 100)) == NULL) ps_pause();
                memset(place, (int)(n & 255), n % 100);
                ps_byte_commit(&here.writer, n % 100, (uint32_t)n);
            }
        }
        uint64_t frames = 0, wanted = check_random(&seed) % 3000, length;
        uint32_t kind;
        int killed = 0;
        for (;;) {
            const unsigned char *place = ps_byte_peek(&here.reader, &length, &kind);
            if (place == NULL && killed) break;
            if (place == NULL) continue;
            CHECK(kind == (uint32_t)frames && length == frames % 100);
            for (uint64_t i = 0; i < length; i++) CHECK(place[i] == (frames & 255));
            ps_byte_release(&here.reader);
            if (++frames == wanted || (wanted == 0 && frames == 1)) {
                CHECK(kill(child, SIGKILL) == 0);
                CHECK(!ended_well(child));
                killed = 1;
            }
        }
        CHECK(!here.reader.damaged && killed);
        CHECK(munmap(sides, 2 * sizeof(side)) == 0);
    }
}

int main(void) {
    nobody_sleeps_for_ever();
    a_killed_writer_leaves_whole_frames(88172645463325252ULL);
    return 0;
}
