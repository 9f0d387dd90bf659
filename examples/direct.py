"""A bolt that names the task of each of its tuples: it finds the tasks in the context."""

from examples.word_count import WordSpout
from pystorm_source import Bolt, Grouping, Stream, Topology


class RouterBolt(Bolt):
    outputs = [Stream(fields=["word"], name="default", direct=True)]

    def initialize(self, conf, ctx):
        self.targets = sorted(int(task) for task, name in ctx["task->component"].items() if name == "letter_bolt")

    def process(self, tup):
        word = tup.values.word
        self.emit([word], direct_task=self.targets[len(word) % len(self.targets)])


class LetterBolt(Bolt):
    outputs = ["word", "task"]

    def initialize(self, conf, ctx):
        self.task = ctx["taskid"]

    def process(self, tup):
        self.emit([tup.values.word, self.task])


class Direct(Topology):
    word_spout = WordSpout.spec()
    router_bolt = RouterBolt.spec(inputs=[word_spout])
    letter_bolt = LetterBolt.spec(inputs={router_bolt: Grouping.DIRECT}, par=3)
