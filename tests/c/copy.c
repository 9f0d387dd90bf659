/* A block is copied whole, and nothing beside it, wherever source and destination lie and however long it is. */
#include "cython_core/primitives/copy.h"

#include "check.h"

#define ROOM (4 * 4096)

static unsigned char from[ROOM], to[ROOM];

int main(void) {
    const size_t sizes[] = {0, 1, 255, 256, 257, 2047, 2048, 2049, 4096, 5000, 8191};
    for (size_t i = 0; i < ROOM; i++) from[i] = (unsigned char)(i * 31 + i / 256);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (size_t behind = 0; behind < 80; behind++) {
            unsigned char *place = to + ((uintptr_t)from - (uintptr_t)to) % 4096 + behind;
            memset(to, 0xEE, ROOM);
            ps_copy(place, from, sizes[s]);
            CHECK(memcmp(place, from, sizes[s]) == 0);
            CHECK(place[sizes[s]] == 0xEE && (place == to || place[-1] == 0xEE));
        }
    }
    return 0;
}
