/* Hashing reads exactly the bytes that it is given, wherever they lie, and gives the same number everywhere. */
#include "cython_core/primitives/mix.h"

#include <string.h>

#include "check.h"

static void mixes_as_published(void) {
    CHECK(ps_mix64(0) == 0);
    CHECK(ps_mix64(1) == UINT64_C(0xB456BCFC34C2CB2C));
}

/* What an implementation written down from the definition of MurmurHash64A gives. */
static void hashes_as_published(void) {
    CHECK(ps_hash_bytes("", 0, UINT64_C(0x0)) == UINT64_C(0x0000000000000000));
    CHECK(ps_hash_bytes("a", 1, UINT64_C(0x5)) == UINT64_C(0x17DFFBC5A8F17839));
    CHECK(ps_hash_bytes("storm", 5, UINT64_C(0x5)) == UINT64_C(0x3B3C6D64DC1429DB));
    CHECK(ps_hash_bytes("12345678", 8, UINT64_C(0x6)) == UINT64_C(0xE9A83AA09BB4C711));
    CHECK(ps_hash_bytes("a longer text of 33 characters...", 33, UINT64_C(0xFFFFFFFFFFFFFFFF)) == UINT64_C(0xF045AEC51CDD8F55));
}

static void reads_little_endian(void) {
    const unsigned char bytes[] = {1, 2, 3, 4, 5, 6, 7, 8};
    CHECK(ps_read_le64(bytes, 0) == 0);
    CHECK(ps_read_le64(bytes, 3) == UINT64_C(0x030201));
    CHECK(ps_read_le64(bytes, 8) == UINT64_C(0x0807060504030201));
}

static void stays_inside_and_does_not_mind_alignment(void) {
    for (size_t length = 0; length < 40; length++) {
        unsigned char *exact = malloc(length + (length == 0)); /* one byte too far is a byte that the sanitizer guards */
        unsigned char *shifted = malloc(length + 3);
        CHECK(exact && shifted);
        for (size_t i = 0; i < length; i++) exact[i] = (unsigned char)(i * 37 + 200);
        memcpy(shifted + 3, exact, length);
        CHECK(ps_hash_bytes(exact, length, 7) == ps_hash_bytes(shifted + 3, length, 7));
        if (length > 0) {
            uint64_t before = ps_hash_bytes(exact, length, 7);
            exact[length - 1] ^= 1;
            CHECK(ps_hash_bytes(exact, length, 7) != before);
        }
        free(exact);
        free(shifted);
    }
    CHECK(ps_hash_bytes("", 0, 0) == 0);
    CHECK(ps_hash_bytes("a", 1, 0) != ps_hash_bytes("a", 1, 1));
}

int main(void) {
    mixes_as_published();
    hashes_as_published();
    reads_little_endian();
    stays_inside_and_does_not_mind_alignment();
    return 0;
}
