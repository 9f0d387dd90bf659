"""Run by the peer's Python: the IdBolt as a pystorm component, speaking Storm's multilang protocol over its pipe."""

from pystorm import Bolt


class IdBolt(Bolt):
    def process(self, tup):
        self.emit(tup.values)


if __name__ == "__main__":
    IdBolt().run()
