from typing import final

@final
class TimerService: ...

@final
class TurnTimer:
    def __init__(self, *args: object, **kwargs: object) -> None: ...
