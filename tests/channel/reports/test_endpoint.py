"""Where the runner listens and where tasks connect, for every kind of master and option."""

import os
import pickle
import subprocess
import sys

import pytest

from pystorm_source.channel.reports import endpoint as feedback_address
from pystorm_source.channel.reports.endpoint import (
    ListenAddress,
    ReportEndpoint,
    Runner,
    in_runner,
    masters_of,
    parents_command,
)
from tests.channel.reports.made_reports import TOKEN

JAVA = ["java", "-cp", "jars/*", "-Xmx1g", "org.apache.spark.deploy.SparkSubmit"]
LOOPBACK = ListenAddress("127.0.0.1", "127.0.0.1")
ALL = ListenAddress("", "")


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["--conf", "spark.master=local[2]", "pyspark-shell"], LOOPBACK),
        (["--master", "local", "job.py"], LOOPBACK),
        (["--master", "local-cluster[2,1,1024]", "--conf", "spark.ui.enabled=false", "job.py"], LOOPBACK),
        (["--master=local[*]", "job.py"], LOOPBACK),
        (["-Dspark.master=local[4]"], LOOPBACK),
        (["--master", "spark://127.0.0.1:7077", "job.py"], ALL),
        (["--master", "yarn", "--deploy-mode", "cluster", "job.py"], ALL),
        (["--conf", "spark.master=k8s://https://api:443", "job.py"], ALL),
        (["--conf", "spark.master=local[2]", "--master", "yarn", "job.py"], ALL),
        (["job.py"], ALL),
        (["job.py", "--master"], ALL),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_loopback_where_every_master_that_is_named_is_local(words, place):
    assert ListenAddress.of("", JAVA + words) == place


def test_where_the_driver_is_unknown_it_listens_everywhere():
    assert masters_of([]) == []
    assert ListenAddress.of("", []) == ALL


def test_the_option_wins():
    local = [*JAVA, "--master", "local[2]"]
    assert ListenAddress.of("10.0.0.5", local) == ListenAddress("10.0.0.5", "10.0.0.5")
    assert ListenAddress.of("driver-svc.spark", local) == ListenAddress("driver-svc.spark", "driver-svc.spark")
    assert ListenAddress.of("0.0.0.0", local) == ListenAddress("0.0.0.0", "")
    assert ListenAddress.of("::", local) == ListenAddress("::", "")


def test_a_task_goes_where_the_ticket_says_or_else_where_the_driver_is():
    assert ReportEndpoint("10.0.0.5", 4040, TOKEN).runner("driver") == Runner("10.0.0.5", 4040, TOKEN)
    assert ReportEndpoint("", 4040, TOKEN).runner("driver") == Runner("driver", 4040, TOKEN)
    assert ReportEndpoint("", 4040, TOKEN).runner("[::1]") == Runner("::1", 4040, TOKEN)
    assert ReportEndpoint("", 4040, TOKEN).runner(None) is None


def test_the_token_travels_and_is_never_shown():
    endpoint = ReportEndpoint("", 4040, TOKEN)
    assert pickle.loads(pickle.dumps(endpoint)).token == TOKEN
    assert len(pickle.dumps(endpoint)) < 150
    for shown in (repr(endpoint), str(endpoint), repr(endpoint.runner("driver")), f"{endpoint.runner('driver')}"):
        assert "token" not in shown
        assert TOKEN.hex() not in shown
    assert endpoint == ReportEndpoint("", 4040, b"another")


def test_a_process_knows_who_has_started_it_and_whether_it_plans():
    code = "import json; from pystorm_source.channel.reports import endpoint as f; "
    code += "print(json.dumps([f.parents_command(), f.in_runner()]))"
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert os.path.basename(sys.executable).split(".")[0] in asked.stdout
    assert asked.stdout.rstrip().endswith("false]")
    assert not in_runner()


def test_where_there_is_no_proc_ps_is_asked(monkeypatch):
    wanted = [word for word in parents_command() if word]

    def no_proc(self):
        raise FileNotFoundError

    monkeypatch.setattr(feedback_address.Path, "read_bytes", no_proc)
    assert parents_command() == " ".join(wanted).split()
    monkeypatch.setenv("PATH", "")
    assert parents_command() == []
