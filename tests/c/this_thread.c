/* A thread has one id. That no other living thread has it, tests/worker/test_own_threads.py shows. */
#include "cython_core/primitives/this_thread.h"

#include "check.h"

int main(void) {
    uintptr_t mine = ps_this_thread();
    CHECK(mine != 0);
    CHECK(ps_this_thread() == mine);
    return 0;
}
