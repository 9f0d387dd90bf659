"""``python -m pystorm_source``: the command ``pystorm-source`` where scripts are not on PATH."""

from pystorm_source.cli.main import app

if __name__ == "__main__":
    app(prog_name="pystorm-source")
