from typing import Any
from weakref import WeakKeyDictionary

own_emits: WeakKeyDictionary[type[Any], int]

def has_subclass(cls: type[Any]) -> None: ...
