VERSION: str
SOURCES: str
DEBUG: bool
