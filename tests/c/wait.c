/* A thread that lets others run goes on, at once or after its sleep; each wait begins with its first turn. */
#define _DEFAULT_SOURCE
#include "cython_core/primitives/wait.h"
#include "testbed/wait_turns.h"

#include "check.h"

int main(void) {
    for (int kind = PS_WAIT_SPIN; kind <= PS_WAIT_PARK; kind++) {
        ps_wait wait = ps_wait_of((enum ps_wait_kind)kind, 1000);
        for (int i = 0; i < 3 * PS_WAIT_SPINS; i++) ps_wait_turn(&wait);
        CHECK(wait.turns >= PS_WAIT_SPINS);
        ps_wait_over(&wait);
        CHECK(wait.turns == 0);
    }
    ps_sleep_nanos(0);
    ps_sleep_nanos(1000);
    return 0;
}
