"""An object store in memory as pyarrow sees one: no append, no rename; an object appears whole when it is closed."""

import io

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSystemHandler, FileType, PyFileSystem


class _Object(io.BytesIO):
    def __init__(self, objects, path):
        super().__init__()
        self.objects, self.path = objects, path

    def close(self):
        if not self.closed:
            self.objects[self.path] = self.getvalue()
        super().close()


class ObjectsInMemory(FileSystemHandler):
    """``objects``: path → bytes."""

    def __init__(self):
        self.objects = {}

    def file_system(self):
        return PyFileSystem(self)

    def get_type_name(self):
        return "memory"

    def get_file_info(self, paths):
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector):
        folder = selector.base_dir.strip("/") + "/"
        paths = [path for path in list(self.objects) if path.startswith(folder)]
        return [self._info(path) for path in paths if "/" not in path[len(folder) :]]

    def _info(self, path):
        data = self.objects.get(path)
        kind = FileType.NotFound if data is None else FileType.File
        return FileInfo(path, kind, size=0 if data is None else len(data))

    def open_input_stream(self, path):
        if path not in self.objects:
            raise FileNotFoundError(path)
        return pa.PythonFile(io.BytesIO(self.objects[path]), mode="r")

    open_input_file = open_input_stream

    def open_output_stream(self, path, metadata):
        return pa.PythonFile(_Object(self.objects, path), mode="w")

    def delete_file(self, path):
        if self.objects.pop(path, None) is None:
            raise FileNotFoundError(path)

    def create_dir(self, path, recursive):
        pass

    def _no(self, *arguments):
        raise NotImplementedError("an object store has no such operation")

    delete_dir = delete_dir_contents = delete_root_dir_contents = move = copy_file = open_append_stream = _no

    def normalize_path(self, path):
        return path.strip("/")
