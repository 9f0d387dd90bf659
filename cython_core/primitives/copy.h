/* Copies long blocks between memory that does not overlap, whatever their places.
 *
 * glibc's memcpy copies blocks of some KiB by one instruction ("rep movsb"). On AMD's Zen that instruction takes twenty
 * times as long where the destination lies 1 to 31 bytes behind the source, counted within pages of 4 KiB (glibc's
 * bug 30994): each load then waits for a store that only seems to hit the same place. Seen on an EPYC with glibc 2.36:
 * 1.6 GB/s, and 25 GB/s if the last bytes are copied first, in pieces, so that no load follows such a store.
 *
 * Threading law: any thread, without the interpreter's lock.
 */
#ifndef PYSTORM_COPY_H
#define PYSTORM_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PS_COPY_PIECE 256  /* more: a piece's own loads follow its stores */
#define PS_COPY_LONG 2048  /* shorter blocks memcpy copies by other instructions */

static inline void ps_copy(void *to, const void *from, size_t bytes) {
    size_t behind = ((uintptr_t)to - (uintptr_t)from) & 4095;
    if (bytes < PS_COPY_LONG || behind == 0 || behind >= 32) {
        memcpy(to, from, bytes);
        return;
    }
    size_t left = bytes - bytes % PS_COPY_PIECE;
    memcpy((unsigned char *)to + left, (const unsigned char *)from + left, bytes - left);
    while (left > 0) {
        left -= PS_COPY_PIECE;
        memcpy((unsigned char *)to + left, (const unsigned char *)from + left, PS_COPY_PIECE);
    }
}

#endif
