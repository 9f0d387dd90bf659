"""What ``pystorm-source demo`` plays: its query, its acts, and what it shows and proves meanwhile."""

__all__: list[str] = []
