"""The option ``path`` of a FilesSpout: what it may name, and how to name what it may not."""

import re

from pystorm_source.errors import OptionError

# One letter and a colon would be a drive, not a scheme.
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/.*)", re.DOTALL)


def local_path(path: str) -> str:
    """The path in the file system of this machine, without ``file:``. Looks at the text alone.

    Raises OptionError for a path of another file system (``s3://…``, ``dbfs:/…``), with what to do instead.
    """
    uri = _URI.fullmatch(path)
    if uri is None:
        return path
    scheme, rest = uri[1].lower(), uri[2]
    if scheme == "file":
        slashes = len(rest) - len(rest.lstrip("/"))
        if rest.lower().startswith("//localhost/"):
            return rest[len("//localhost") :]
        if slashes != 2:
            return "/" + rest.lstrip("/")
        remedy = "a file URI names no host: mount the folder on driver and executors, and give the path of the mount"
    elif scheme == "dbfs":
        inside = "/" + rest.lstrip("/")
        mount = inside if inside.startswith("/Volumes/") else f"/dbfs{inside}"
        remedy = f"DBFS is mounted: give {mount!r}, or a folder of a volume, /Volumes/CATALOG/SCHEMA/VOLUME/..."
    else:
        remedy = (
            "mount it on driver and executors, and give the path of the mount with files.identity=path; or read it "
            "with a file source of Spark's, such as spark.readStream.text(path)"
        )
    raise OptionError(
        f"option 'path' of a FilesSpout is a path in the file system of driver and executors, and {scheme}: is none: "
        f"{remedy}. Given: {path!r}"
    )
