from typing import final

@final
class ColumnMemory: ...
