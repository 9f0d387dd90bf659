/* CHECK: an assertion that stays in every build and names what failed. */
#ifndef PYSTORM_TESTS_CHECK_H
#define PYSTORM_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                                              \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                             \
            exit(1);                                                                                                  \
        }                                                                                                             \
    } while (0)

/* A reproducible sequence of numbers (xorshift64*). */
static inline unsigned long long check_random(unsigned long long *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717ULL;
}

#endif
