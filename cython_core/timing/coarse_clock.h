/* A clock for deadlines of some milliseconds, cheap enough to read between two calls of a component.
 *
 * CLOCK_MONOTONIC_COARSE is the time of the kernel's last tick: no system call and no timestamp counter, about 6 ns,
 * one to ten milliseconds late. It only ends turns early; what a topology computes never depends on it.
 */
#ifndef PYSTORM_COARSE_CLOCK_H
#define PYSTORM_COARSE_CLOCK_H

#include <stdint.h>
#include <time.h>

#ifdef CLOCK_MONOTONIC_COARSE
#define PS_COARSE_CLOCK CLOCK_MONOTONIC_COARSE
#else
#define PS_COARSE_CLOCK CLOCK_MONOTONIC /* not Linux */
#endif

/* Nanoseconds since some start, never backwards. */
static inline uint64_t ps_coarse_nanos(void) {
    struct timespec now;
    clock_gettime(PS_COARSE_CLOCK, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

#endif
