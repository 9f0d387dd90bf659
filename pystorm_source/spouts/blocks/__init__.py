"""What spouts of files and of objects share: blocks that become rows or columns, lines of ranges, Parquet, options."""

__all__: list[str] = []
