"""What ``pystorm-source demo`` plays: its query, its acts, what it shows while they run, and its proof."""

__all__: list[str] = []
