VERSION: str
SOURCES: str
ABI: str
DEBUG: bool
