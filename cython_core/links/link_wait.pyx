"""Where a thread sleeps that waits for its links alone: until another process rings or ends, or a thread wakes it.

    wait(seconds)    prepare every bell ─► look once more ─► poll(wake_fd, bells, processes) ─► answer, read files empty

It stands for an EventLoop (worker/event_loop.py) where no coroutine runs. One round of asyncio is twenty times the
Python of this, and all of it lies between the ring and the turn that reads the frame.

Threading law: one thread waits; any thread may write to ``wake_fd``.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals, PyErr_SetFromErrno
from libc.errno cimport EINTR, errno
from libc.math cimport ceil
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, realloc

from cython_core.links.link_end cimport LinkEnd, ps_doorbell_answer

import os

cdef extern from "cython_core/links/wait_files.h" nogil:
    ctypedef struct ps_file:
        int fd
        short revents
    ps_file ps_file_of(int fd)
    int ps_files_wait(ps_file *files, uint64_t count, int millis)
    void ps_file_empty(int fd)

cdef enum:
    FILES = 2       # of a link: its bell, its process


# A shorter wait only looks. More: the thread's other work waits for it in vain, as poll() counts in milliseconds. Less:
# a time that has nearly come costs a millisecond.
cdef double SHORTEST_SECONDS = 50e-6

# A wait that would last longer ends then. More: an exception that another thread sends to this one, as when the time of
# a run in the test kit is over, comes that much later. Less: an idle thread wakes for nothing.
cdef double LONGEST_SECONDS = 0.25


@cython.final
cdef class LinkWait:
    """``LinkWait()``; its files are open as long as it has a holder."""

    cdef set holders
    cdef list links
    cdef list ends                      # of these
    cdef bint any_ended
    cdef ps_file *files                 # wake_fd, then those of each link
    cdef readonly int wake_fd           # eventfd; -1: no holder

    has_callbacks = False               # no function of a component is called while it waits

    def __cinit__(self):
        self.holders = set()
        self.links = []
        self.ends = []
        self.wake_fd = -1

    def __dealloc__(self):
        free(self.files)

    def hold(self, holder):
        """Opens it."""
        if not self.holders:
            self.wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self.list_files()
        self.holders.add(holder)

    def release(self, holder):
        """Closes it once it has no holder."""
        if holder in self.holders:
            self.holders.discard(holder)
            if not self.holders:
                os.close(self.wake_fd)
                self.wake_fd = -1

    def watch(self, link):
        """``link``, a TaskLink: its ``end`` and ``pidfd`` end a wait from here on; its ``ended()`` is called once that
        process has ended."""
        self.links.append(link)
        self.ends.append(<LinkEnd?>link.end)
        self.list_files()

    def unwatch(self, link):
        """It ends no wait any more."""
        place = self.links.index(link)
        del self.links[place], self.ends[place]
        self.list_files()

    cdef int list_files(self) except -1:
        cdef Py_ssize_t i, count = 1 + FILES * len(self.links)
        cdef ps_file *files = <ps_file *>realloc(self.files, <size_t>count * sizeof(ps_file))
        cdef LinkEnd end
        if files is NULL:
            raise MemoryError()
        self.files = files
        files[0] = ps_file_of(self.wake_fd)
        self.any_ended = False
        for i in range(len(self.links)):
            end = <LinkEnd>self.ends[i]
            files[1 + FILES * i] = ps_file_of(end.own_fd)
            files[2 + FILES * i] = ps_file_of(self.links[i].pidfd)
        return 0

    def wait(self, seconds):
        """Blocking: until there may be something to do, for ``seconds`` and a quarter of a second at most; None: for
        the latter. A signal ends it, too. Raises what a signal's handler does."""
        cdef LinkEnd end
        cdef int found = 0
        for end in self.ends:
            end.prepare_sleep()
        try:
            # Order: prepared, then looked once more.
            if not self.has_work():
                found = self.sleep(seconds)
        finally:
            for end in self.ends:
                ps_doorbell_answer(end.own_bell)
        if found > 0:
            self.read_files()

    cdef bint has_work(self) except -1:
        """Whether a frame waits or there is room for one, or a process has ended, which its executor has not said yet.
        """
        cdef LinkEnd end
        cdef bint found = self.any_ended
        for end in self.ends:  # order: each is flushed
            found = end.has_frame() or (end.is_writing() and end.flush()) or found
        return found

    cdef int sleep(self, object seconds) except -1:
        cdef int found, millis
        cdef double most = LONGEST_SECONDS if seconds is None else min(<double>seconds, LONGEST_SECONDS)
        cdef uint64_t count = <uint64_t>(1 + FILES * len(self.links))
        millis = <int>ceil(most * 1000) if most > SHORTEST_SECONDS else 0
        with nogil:
            found = ps_files_wait(self.files, count, millis)
        if found < 0:
            if errno != EINTR:
                PyErr_SetFromErrno(OSError)
            PyErr_CheckSignals()
            return 0
        return found

    cdef int read_files(self) except -1:
        """The eventfds are empty behind it, and the links know whose process has ended."""
        cdef Py_ssize_t i
        for i in range(1 + FILES * len(self.links)):
            if self.files[i].revents == 0:
                continue
            if i > 0 and i % FILES == 0:
                self.links[i // FILES - 1].ended()
                self.any_ended = True
                self.files[i].fd = -1  # or it would be readable in each wait to come
            else:
                ps_file_empty(self.files[i].fd)
        return 0
