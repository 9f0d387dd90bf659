"""Refuses modules of compiled components that were built for another version of the core."""

from cython_core import build_info


def require(module: str, version: str, abi: str) -> None:
    """Called by a module of compiled components before it touches the core.

    Args:
        module: its name.
        version: of pystorm-source when it was built.
        abi: ``cython_core.sources.abi`` of the declarations that it was compiled against.

    Raises:
        ImportError: the version or the declarations differ from the installed core.
    """
    if (version, abi) == (build_info.VERSION, build_info.ABI):
        return
    from cython_core.arrow.row_error import coded

    if version != build_info.VERSION:
        what = f"pystorm-source {version}, and pystorm-source {build_info.VERSION} is installed"
    else:
        what = f"other declarations of pystorm-source {version} than those that are installed ({build_info.ABI})"
    raise coded(
        ImportError,
        "PYSTORM_COMPILED_FOR_ANOTHER_VERSION",
        f"{module} was compiled against {what}: build it again with the installed version, "
        f"`pip install --no-build-isolation --no-deps --force-reinstall .` in its folder. Given: {version} ({abi})",
    )
