from typing import final

@final
class SpoutStall: ...
