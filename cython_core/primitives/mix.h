/* 64-bit mixing and byte hashing: the finaliser of MurmurHash3 and MurmurHash64A, both placed in the public domain by
 * Austin Appleby. The same on every platform of either endianness, in every process and run. */
#ifndef PYSTORM_MIX_H
#define PYSTORM_MIX_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t ps_mix64(uint64_t x) {
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= UINT64_C(0xc4ceb9fe1a85ec53);
    x ^= x >> 33;
    return x;
}

static inline uint64_t ps_read_le64(const unsigned char *p, size_t n) {
    uint64_t word = 0;
    size_t i;
    for (i = 0; i < n; i++) word |= (uint64_t)p[i] << (8 * i);
    return word;
}

static inline uint64_t ps_hash_bytes(const void *data, size_t length, uint64_t seed) {
    const uint64_t m = UINT64_C(0xc6a4a7935bd1e995);
    const unsigned char *p = (const unsigned char *)data;
    const unsigned char *end = p + (length & ~(size_t)7);
    uint64_t h = seed ^ ((uint64_t)length * m);
    for (; p != end; p += 8) {
        uint64_t k = ps_read_le64(p, 8) * m;
        k ^= k >> 47;
        h = (h ^ (k * m)) * m;
    }
    if (length & 7) h = (h ^ ps_read_le64(p, length & 7)) * m;
    h ^= h >> 47;
    h *= m;
    h ^= h >> 47;
    return h;
}

#endif
