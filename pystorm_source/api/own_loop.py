"""A component's own event loop, which the calling thread runs until an answer is there."""

import asyncio
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


class OwnLoop:
    """Lets blocking methods use a client that is made for asyncio. Its loop runs only during a call.

    The first call makes the loop, because an instance may go to another process before that.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs the coroutine and returns its result. Blocks, and raises what the coroutine raises."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        with alone():
            return self._loop.run_until_complete(coroutine)

    def close(self) -> None:
        """Cancels what is left in it."""
        if self._loop is None:
            return
        loop, self._loop = self._loop, None
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        with alone():
            if left:
                loop.run_until_complete(_ended(left))
            loop.close()


async def _ended(tasks: Iterable["asyncio.Task[Any]"]) -> None:
    await asyncio.wait(tasks)


@contextmanager
def alone() -> Iterator[None]:
    """Hides another loop that runs in this thread, as in a notebook cell, and its task, while the block runs.

    From Python 3.14 on, a thread has one running task, no longer one for each loop: while the outer loop's task is
    registered, no task of the inner loop can run.
    """
    outer = asyncio._get_running_loop()
    swap = getattr(asyncio.tasks, "_swap_current_task", None) if outer is not None else None  # from 3.12 on
    task = swap(outer, None) if swap is not None else None
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(outer)
        if swap is not None:
            swap(outer, task)
