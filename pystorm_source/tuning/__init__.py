"""The advisor: what holds a topology back, what to change, and what that gains. Pure except ``trial``, which runs it.

trial (local run) ──┐                                       ┌─► sweep: measured gains, the frontier
                    ├─► Observed ─► classify ─► proposals ──┤
record file ────────┘                                       └─► advice: modelled gains ─► page (YAML)
"""

__all__: list[str] = []
