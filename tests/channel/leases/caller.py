"""Calls within a limit, as a bolt makes them."""

import threading
import time


class Caller:
    """A thread that calls as fast as it may."""

    def __init__(self, permits, times, until, outcome=lambda: True):
        self.permits, self.times, self.until, self.outcome = permits, times, until, outcome
        self.count = 0
        self.error = None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while (now := time.monotonic()) < self.until:
                woken = threading.Event()
                waiter = self.permits.take(woken.set)
                while waiter.time is None and waiter.error is None:
                    woken.wait(1)
                    if time.monotonic() > self.until:
                        self.permits.give_up(waiter)
                        return
                if waiter.error is not None:
                    raise waiter.error
                time.sleep(max(0.0, waiter.time - time.monotonic()))
                if self.permits.starts(waiter):
                    now = time.monotonic()
                    self.times.append(now)
                    self.count += 1
                    self.permits.ended(waiter, self.outcome(), "ConnectionError: down")
        except Exception as error:
            self.error = error
