/* The core's timing wheel at work; started and asked by benchmarks/rungs/wheel.py.
 *
 *     wheels
 *
 * reads lines "case number" and answers each with one line of numbers; WheelPeers.java beside answers the same:
 *
 *     pairs-COUNT MILLIS    COUNT timers are in, due in 60 to 120 s; one at random is cancelled and inserted again, and
 *                           so on for so long: "pairs seconds"
 *     low RATE, high RATE   requests as of the blog's two settings, so many a second: "achieved slip lateness early":
 *                           the share of RATE reached, two 99th percentiles in milliseconds, 1 where any was early
 *     empty-low RATE, …     the same events without a timer, all due at once: "requests a second"
 *     spread COUNT          so many timers, due within a second: "lateness earliest cpu": the 99th percentile and the
 *                           smallest in milliseconds, processor time in seconds
 *
 * The clock is read once for up to 256 events that are due, before each of which the wheel is advanced.
 */
#define _GNU_SOURCE
#include "cython_core/primitives/histogram.h"
#include "cython_core/timing/timing_wheel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define MILLI UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
#define HUGE_PAGE (UINT64_C(2) << 20)

static uint64_t nanos_of(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static uint64_t clock_now(void) { return nanos_of(CLOCK_MONOTONIC); }

static uint64_t next_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

static uint64_t below(uint64_t *state, uint64_t bound) { return ((next_random(state) >> 32) * bound) >> 32; }

static double uniform(uint64_t *state) { return ((double)(next_random(state) >> 11) + 0.5) / 9007199254740992.0; }

/* Zeroed, in large pages if the system gives them. */
static void *allocate(size_t bytes) {
    size_t whole = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void *made = aligned_alloc(HUGE_PAGE, whole);
    if (made == NULL) exit(2);
#ifdef MADV_HUGEPAGE
    madvise(made, whole, MADV_HUGEPAGE);
#endif
    memset(made, 0, whole);
    return made;
}

/* A timer and what it is for. */
typedef struct {
    ps_timer timer;
    uint64_t number;
} timed;

static void pairs(uint64_t count, uint64_t millis) {
    uint64_t seed = 88172645463325252, done = 0, began, now;
    timed *timers = (timed *)allocate(count * sizeof(timed));
    ps_wheel wheel;
    now = began = clock_now();
    if (ps_wheel_init(&wheel, MILLI, now) != 0) exit(2);
    for (uint64_t i = 0; i < count; i++)
        ps_wheel_insert(&wheel, &timers[i].timer, now + (60000 + below(&seed, 60000)) * MILLI);
    began = clock_now();
    do {
        now = clock_now();
        for (int i = 0; i < 1000; i++) {
            ps_timer *timer = &timers[below(&seed, count)].timer;
            ps_wheel_cancel(&wheel, timer);
            ps_wheel_insert(&wheel, timer, now + (60000 + below(&seed, 60000)) * MILLI);
        }
        done += 1000;
        if (ps_wheel_advance(&wheel, now) != NULL) exit(3);
    } while (now - began < millis * MILLI);
    printf("%llu %f\n", (unsigned long long)done, (double)(clock_now() - began) * 1e-9);
    ps_wheel_free(&wheel);
    free(timers);
}

/* A request as of the blog: 100 bytes and a timer. */
typedef struct {
    ps_timer timer;
    uint64_t due;
    char payload[100];
} request;

/* What happens when, all known before: request `number` comes, or is completed. */
typedef struct {
    uint64_t when;
    uint32_t number;
    uint32_t completed;
} event;

#define TIME_OUT (200 * MILLI)

#define MOST_REQUESTS UINT64_C(12000000)
#define DIGIT_BITS 11

/* By time, digit by digit; below 2^33 ns. */
static void sort(event *events, uint64_t count) {
    event *from = events, *to = (event *)allocate(count * sizeof(event)), *other;
    for (int shift = 0; shift < 4 * DIGIT_BITS; shift += DIGIT_BITS) {
        uint64_t starts[(1 << DIGIT_BITS) + 1] = {0};
        for (uint64_t i = 0; i < count; i++) starts[((from[i].when >> shift) % (1 << DIGIT_BITS)) + 1]++;
        for (int digit = 0; digit < 1 << DIGIT_BITS; digit++) starts[digit + 1] += starts[digit];
        for (uint64_t i = 0; i < count; i++) to[starts[(from[i].when >> shift) % (1 << DIGIT_BITS)]++] = from[i];
        other = from;
        from = to;
        to = other;
    }
    free(to); /* an even number of passes: sorted where it was */
}

/* Exponential distances between requests, of two seconds at most; each takes a log-normal time, given by its 50th and
 * 75th percentile in milliseconds. */
static event *events_of(uint64_t rate, double median, double upper, uint64_t *count) {
    uint64_t seed = 2463534242, n = 0, requests = rate * 2 < MOST_REQUESTS ? rate * 2 : MOST_REQUESTS;
    double when = 0, sigma = log(upper / median) / 0.6744897501960817;
    event *events = (event *)allocate(2 * requests * sizeof(event));
    for (uint64_t i = 0; i < requests; i++) {
        when += -log(uniform(&seed)) * 1e9 / (double)rate;
        double normal = sqrt(-2 * log(uniform(&seed))) * cos(6.283185307179586 * uniform(&seed));
        double takes = median * exp(sigma * normal) * 1e6;
        events[n++] = (event){(uint64_t)when, (uint32_t)i, 0};
        if (takes < (double)TIME_OUT) events[n++] = (event){(uint64_t)(when + takes), (uint32_t)i, 1};
    }
    sort(events, n);
    *count = n;
    return events;
}

static uint64_t give_due(ps_wheel *wheel, uint64_t now, ps_histogram *lateness) {
    uint64_t early = 0;
    for (ps_timer *timer; (timer = ps_wheel_advance(wheel, now)) != NULL;) {
        request *due = (request *)timer;
        if (due->due > now) early = 1;
        else ps_histogram_record(lateness, now - due->due);
    }
    return early;
}

static void blog(uint64_t rate, double median, double upper, bool empty) {
    static ps_histogram slip, lateness;
    uint64_t count, early = 0, places = 1, i = 0, checked = 0;
    event *events = events_of(rate, median, upper, &count);
    while (!empty && places < rate / 2) places *= 2; /* half a second's requests: none lives that long */
    request *ring = (request *)allocate(places * sizeof(request));
    ps_wheel wheel;
    uint64_t began = clock_now() + 10 * MILLI, now = began;
    memset(&slip, 0, sizeof slip);
    memset(&lateness, 0, sizeof lateness);
    if (empty) began -= events[count - 1].when + 10 * MILLI;
    if (ps_wheel_init(&wheel, MILLI, began) != 0) exit(2);
    uint64_t started = clock_now();
    while (i < count) {
        now = clock_now();
        early |= give_due(&wheel, now, &lateness);
        if (now < began || events[i].when > now - began) continue;
        uint64_t first = i, until = now - began;
        if (first + 256 < count && events[first + 256].when < until) until = events[first + 256].when;
        for (; i < count && events[i].when <= until; i++) {
            if (empty) {
                checked += events[i].number ^ events[i].completed;
                continue;
            }
            request *each = &ring[events[i].number % places];
            if (events[i].completed) {
                ps_wheel_cancel(&wheel, &each->timer);
                continue;
            }
            if (each->timer.link != NULL) exit(4); /* half a second late: never if the rate is reached */
            memset(each->payload, 0, sizeof each->payload);
            each->due = now + TIME_OUT;
            ps_wheel_insert(&wheel, &each->timer, each->due);
        }
        ps_histogram_record_many(&slip, now - began - events[first].when, i - first);
    }
    if (empty) {
        double seconds = (double)(clock_now() - started) * 1e-9;
        printf("%f %llu\n", (double)(2 * rate) / seconds, (unsigned long long)checked % 2);
        free(ring);
        free(events);
        ps_wheel_free(&wheel);
        return;
    }
    double took = (double)(now - began), wished = (double)events[count - 1].when;
    while (ps_wheel_size(&wheel) > 0) early |= give_due(&wheel, clock_now(), &lateness);
    printf("%f %f %f %llu\n", wished / took, ps_histogram_quantile(&slip, 0.99) * 1e-6,
           ps_histogram_quantile(&lateness, 0.99) * 1e-6, (unsigned long long)early);
    ps_wheel_free(&wheel);
    free(ring);
    free(events);
}

static void sleep_until(uint64_t when) {
    struct timespec at = {(time_t)(when / SECOND), (long)(when % SECOND)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void spread(uint64_t count) {
    static ps_histogram lateness;
    uint64_t seed = 88172645463325252, used = nanos_of(CLOCK_PROCESS_CPUTIME_ID), now = clock_now(), earliest = SECOND;
    uint64_t began = now + SECOND;
    timed *timers = (timed *)allocate(count * sizeof(timed));
    ps_wheel wheel;
    memset(&lateness, 0, sizeof lateness);
    if (ps_wheel_init(&wheel, MILLI, now) != 0) exit(2);
    for (uint64_t i = 0; i < count; i++) {
        timers[i].number = began + below(&seed, SECOND);
        ps_wheel_insert(&wheel, &timers[i].timer, timers[i].number);
    }
    while (ps_wheel_size(&wheel) > 0) {
        sleep_until(ps_wheel_next(&wheel));
        now = clock_now();
        for (ps_timer *timer; (timer = ps_wheel_advance(&wheel, now)) != NULL;) {
            uint64_t due = ((timed *)timer)->number;
            if (due > now) exit(5);
            if (now - due < earliest) earliest = now - due;
            ps_histogram_record(&lateness, now - due);
        }
    }
    printf("%f %f %f\n", ps_histogram_quantile(&lateness, 0.99) * 1e-6, (double)earliest * 1e-6,
           (double)(nanos_of(CLOCK_PROCESS_CPUTIME_ID) - used) * 1e-9);
    ps_wheel_free(&wheel);
    free(timers);
}

int main(void) {
    char name[64];
    unsigned long long number, count;
    while (scanf("%63s %llu", name, &number) == 2) {
        if (sscanf(name, "pairs-%llu", &count) == 1) pairs(count, number);
        else if (strcmp(name, "low") == 0) blog(number, 20, 60, false);
        else if (strcmp(name, "high") == 0) blog(number, 200, 400, false);
        else if (strcmp(name, "empty-low") == 0) blog(number, 20, 60, true);
        else if (strcmp(name, "empty-high") == 0) blog(number, 200, 400, true);
        else if (strcmp(name, "spread") == 0) spread(number);
        else return 1;
        fflush(stdout);
    }
    return 0;
}
