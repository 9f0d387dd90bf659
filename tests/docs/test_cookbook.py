"""The recipes of docs/COOKBOOK.md, run from top to bottom. test_connect_recipes has those that need more packages."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks
from tests.docs.postgres_server import postgres_binary

PAGE = ROOT / "docs/COOKBOOK.md"
pytestmark = pytest.mark.timeout(240)
PASSWORD = "correct-horse"


def test_no_recipe_is_long():
    for block in blocks(PAGE, "python") + blocks(PAGE, "python", modules=True):
        assert len([line for line in block.text.splitlines() if line.strip()]) <= 25, f"line {block.line}"


def test_every_recipe_is_in_the_table():
    text = PAGE.read_text()
    linked = set(re.findall(r"\]\(#([\w-]+)\)", text.split("\n## ")[0]))
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert linked == {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.fixture(scope="module")
def page(spark, tmp_path_factory) -> dict:
    """What the page leaves behind, in a folder of its own."""
    folder = tmp_path_factory.mktemp("cookbook")
    names = {"__name__": "__main__", "spark": spark, "folder": folder}
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SHOP_PASSWORD", PASSWORD)
        for block in blocks(PAGE, "python"):
            text = block.text.replace("/data/", f"{folder}/")
            exec(compile("\n" * (block.line - 1) + text, PAGE.name, "exec"), names)
        yield names
    spark.streams.resetTerminated()


def table(spark, name: str, *columns: str) -> Counter:
    return Counter(tuple(row) for row in spark.table(name).select(*columns).collect())


@pytest.mark.campaign
@pytest.mark.spark
def test_streams(spark, page):
    # 2 is paid after 70 minutes, 3 is never paid.
    assert table(spark, "paid", "id") == Counter({(0,): 1, (1,): 1, (30,): 1, (90,): 1})
    assert table(spark, "once", "id") == Counter((n,) for n in [0, 1, 2, 3, 30, 90])
    amounts = {("bob", 20.0): 1, ("ann", 70.0): 1, ("bob", 300.0): 1}
    assert table(spark, "by_window", "customer", "amount") == Counter(amounts)
    assert table(spark, "by_session", "customer", "orders") == Counter({("bob", 2): 1, ("ann", 3): 1, ("bob", 1): 1})


@pytest.mark.campaign
@pytest.mark.spark
def test_tables(spark, page):
    folder: Path = page["folder"]

    def read(name: str, *columns: str) -> Counter:
        return Counter(tuple(row) for row in spark.read.parquet(str(folder / name)).select(*columns).collect())

    assert read("dead", "component", "values") == Counter({("halves", '["5,5"]'): 1, ("halves", '["six"]'): 1})
    assert read("halves", "half") == Counter({(2.75,): 1})
    assert read("good", "id", "amount") == Counter({(n, 10.0 * n): 1 + (n == 3) for n in [1, 2, 3, 30, 90]})
    assert read("refused", "id", "reason") == Counter({(0, "nothing to pay"): 1})
    assert read("all_orders", "id") == Counter([(n,) for n in [0, 1, 2, 3, 3, 30, 90]])
    assert read("all_orders/batch=history", "id") == Counter([(n,) for n in [0, 1, 2, 3, 3]])


@pytest.mark.campaign
@pytest.mark.spark
def test_a_renamed_spout_is_refused_by_the_rehearsal(page):
    with pytest.raises(Exception, match="the checkpoint belongs to another topology"):
        page["rehearse"](str(page["folder"] / "checkpoints/all_orders"), page["Renamed"])
    assert page["rehearse"](str(page["folder"] / "checkpoints/all_orders"), page["Orders"]) == 0


@pytest.mark.campaign
@pytest.mark.spark
def test_the_password_is_in_no_plan(page):
    plan = page["from_kafka"]._jdf.queryExecution().toString()
    assert "kafka.sasl.username=shop" in plan and "kafka.sasl.password=*********(redacted)" in plan
    assert PASSWORD not in plan


@pytest.mark.parametrize(("ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_a_missing_postgres_fails_where_ci_is_true_and_else_skips(monkeypatch, tmp_path, ci, outcome):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("glob.glob", lambda pattern: [])
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="apt-get install postgresql"):
        postgres_binary("initdb")
