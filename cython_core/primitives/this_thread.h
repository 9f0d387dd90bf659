/* Which thread runs here: an address that no other thread has as long as this one lives. One instruction where the
 * compiler knows the register, so that an emit can afford to ask. */
#ifndef PYSTORM_THIS_THREAD_H
#define PYSTORM_THIS_THREAD_H

#include <stdint.h>

#if defined(__has_builtin)
#if __has_builtin(__builtin_thread_pointer)
#define PS_THREAD_POINTER 1
#endif
#endif

#ifdef PS_THREAD_POINTER
static inline uintptr_t ps_this_thread(void) {
    return (uintptr_t)__builtin_thread_pointer();
}
#else
#include <pythread.h>
static inline uintptr_t ps_this_thread(void) {
    return (uintptr_t)PyThread_get_thread_ident();
}
#endif

#endif
