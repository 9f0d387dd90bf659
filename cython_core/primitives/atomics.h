/* Atomic words with the memory order in the name of each operation: the one file that knows <stdatomic.h>.
 *
 *     relaxed   a whole value, in no order with others: an index by the only thread that writes it, a count to look at
 *     acquire   what the storing thread wrote before its release is seen from here on
 *     release   what this thread wrote before is seen by a thread that acquires this value
 *
 * On x86-64 acquire and release are plain moves and only hold the compiler back; a compare-exchange is one locked
 * instruction whatever its order. Standalone fences are not offered: ThreadSanitizer cannot follow them, and what it
 * cannot follow is not tested here.
 *
 * PYSTORM_NEGATIVE_CONTROL makes every order relaxed. Only tests that must then fail compile with it.
 */
#ifndef PYSTORM_ATOMICS_H
#define PYSTORM_ATOMICS_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

#if defined(__SANITIZE_THREAD__)
#define PS_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PS_THREAD_SANITIZER 1
#endif
#endif

/* Two slots a move. ThreadSanitizer sees atomics only, so for it, as for other processors, each slot is one. */
#if defined(__x86_64__) && !defined(PS_THREAD_SANITIZER)
#define PS_SLOT_PAIRS 1
#else
#define PS_SLOT_PAIRS 0
#endif

#ifdef PYSTORM_NEGATIVE_CONTROL
#define PS_ACQUIRE memory_order_relaxed
#define PS_RELEASE memory_order_relaxed
#else
#define PS_ACQUIRE memory_order_acquire
#define PS_RELEASE memory_order_release
#endif

/* Two lines of 64 bytes: processors that prefetch the neighbour of a line share it as much as the line itself. Measured
 * on AMD's Zen 4: with 64, rings that are published by the slot hand over as much (0.98 to 1.02), those published by
 * the index, whose threads read each other's line, 0.7 of it near and 0.5 far. */
#define PS_APART_BYTES 128
#define PS_APART alignas(PS_APART_BYTES)

#if defined(__GNUC__)
#define PS_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define PS_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#else
#define PS_LIKELY(condition) (condition)
#define PS_UNLIKELY(condition) (condition)
#endif

#define PS_LINE_SLOTS 8 /* of 8 bytes in a line of 64 */

typedef struct {
    _Atomic uint64_t value;
} ps_word;

typedef struct {
    void *_Atomic value;
} ps_slot;

static inline uint64_t ps_load_relaxed(const ps_word *word) {
    return atomic_load_explicit(&((ps_word *)(uintptr_t)word)->value, memory_order_relaxed);
}

static inline uint64_t ps_load_acquire(const ps_word *word) {
    return atomic_load_explicit(&((ps_word *)(uintptr_t)word)->value, PS_ACQUIRE);
}

static inline void ps_store_relaxed(ps_word *word, uint64_t value) {
    atomic_store_explicit(&word->value, value, memory_order_relaxed);
}

static inline void ps_store_release(ps_word *word, uint64_t value) {
    atomic_store_explicit(&word->value, value, PS_RELEASE);
}

/* 1 where *word was *seen and is `wanted` now; else 0 and *seen is what it was. May fail for no reason. */
static inline int ps_exchange_if_relaxed(ps_word *word, uint64_t *seen, uint64_t wanted) {
    return atomic_compare_exchange_weak_explicit(
        &word->value, seen, wanted, memory_order_relaxed, memory_order_relaxed);
}

/* What *word was. Exchanges of one word have an order, and the later one sees what was stored before the earlier one: a
 * full fence, where it matters, that ThreadSanitizer can follow. Also under PYSTORM_NEGATIVE_CONTROL. */
static inline uint64_t ps_exchange(ps_word *word, uint64_t value) {
    return atomic_exchange_explicit(&word->value, value, memory_order_acq_rel);
}

static inline void *ps_slot_load_relaxed(const ps_slot *slot) {
    return atomic_load_explicit(&((ps_slot *)(uintptr_t)slot)->value, memory_order_relaxed);
}

static inline void *ps_slot_load_acquire(const ps_slot *slot) {
    return atomic_load_explicit(&((ps_slot *)(uintptr_t)slot)->value, PS_ACQUIRE);
}

static inline void ps_slot_store_relaxed(ps_slot *slot, void *item) {
    atomic_store_explicit(&slot->value, item, memory_order_relaxed);
}

static inline void ps_slot_store_release(ps_slot *slot, void *item) {
    atomic_store_explicit(&slot->value, item, PS_RELEASE);
}

/* Many slots at once, filled one after the other as far as any thread can see. Pairs rely on what x86-64 processors do:
 * plain stores stay in order, and an aligned move of 16 bytes is one, which the makers' manuals of system programming
 * (Intel: "Guaranteed Atomic Operations", AMD: "Access Atomicity") promise for every processor with AVX. The signal
 * fences keep the compiler to that order, too. A line is written in 4 stores in place of 8: so batches get their
 * speed. */
static inline void ps_slots_fill_release(ps_slot *slots, void *const *items, uint64_t count) {
    uint64_t i = 0;
#if PS_SLOT_PAIRS
    if (count && (uintptr_t)slots % 16) {
        ps_slot_store_release(&slots[0], items[0]);
        i = 1;
    }
    atomic_signal_fence(memory_order_seq_cst);
    for (; i + 2 <= count; i += 2) {
        _mm_store_si128((__m128i *)(slots + i), _mm_loadu_si128((const __m128i *)(items + i)));
        atomic_signal_fence(memory_order_seq_cst);
    }
#endif
    for (; i < count; i++) ps_slot_store_release(&slots[i], items[i]);
}

/* Moves the items out of slots that are known to be filled and leaves NULL, likewise one after the other. */
static inline void ps_slots_take_release(ps_slot *slots, void **items, uint64_t count) {
    uint64_t i = 0;
#if PS_SLOT_PAIRS
    if (count && (uintptr_t)slots % 16) {
        items[0] = ps_slot_load_relaxed(&slots[0]);
        ps_slot_store_release(&slots[0], NULL);
        i = 1;
    }
    atomic_signal_fence(memory_order_seq_cst);
    for (; i + 2 <= count; i += 2) {
        _mm_storeu_si128((__m128i *)(items + i), _mm_load_si128((const __m128i *)(slots + i)));
        _mm_store_si128((__m128i *)(slots + i), _mm_setzero_si128());
        atomic_signal_fence(memory_order_seq_cst);
    }
#endif
    for (; i < count; i++) {
        items[i] = ps_slot_load_relaxed(&slots[i]);
        ps_slot_store_release(&slots[i], NULL);
    }
}

/* Zeroed memory for `head` bytes and count * width behind them, aligned as PS_APART asks; free() lets it go. NULL where
 * there is none. */
static inline void *ps_alloc_apart(size_t head, uint64_t count, size_t width) {
    if (width == 0 || count > (SIZE_MAX - head - PS_APART_BYTES) / width) return NULL;
    size_t size = (head + (size_t)count * width + PS_APART_BYTES - 1) & ~(size_t)(PS_APART_BYTES - 1);
    void *memory = aligned_alloc(PS_APART_BYTES, size);
    if (memory != NULL) memset(memory, 0, size);
    return memory;
}

/* Asks for the line of an address, to write to it soon. */
static inline void ps_prefetch_to_write(const void *address) {
#if defined(__x86_64__) && defined(__GNUC__)
    /* In writing, as without -mprfchw the builtin asks for a shared line. */
    __asm__ __volatile__("prefetchw %0" : : "m"(*(const char *)address));
#elif defined(__GNUC__)
    __builtin_prefetch(address, 1);
#else
    (void)address;
#endif
}

/* Tells the core that this is a waiting loop. */
static inline void ps_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" ::: "memory");
#endif
}

#endif
