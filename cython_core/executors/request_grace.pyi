from typing import final

@final
class RequestGrace:
    def __init__(self, component: str, task: int) -> None: ...
