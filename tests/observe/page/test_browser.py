"""The page in a browser: it draws without a complaint, says what to change, and shows names as they are."""

import io
import json
import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import axe_playwright_python
import msgspec
import pytest
from PIL import Image
from playwright.sync_api import expect

from pystorm_source.observe.page.document import document, framed
from pystorm_source.observe.page.runs import view_of
from pystorm_source.observe.page.view import View
from pystorm_source.records.record import (
    Bottleneck,
    ComponentProgress,
    Counts,
    EdgeProgress,
    ErrorRecord,
    LimitProgress,
    Metric,
    OutageProgress,
    PystormProgress,
    TopologyProgress,
)
from pystorm_source.records.record_file import Begin, RecordedRun
from pystorm_source.records.record_folder import make_private, private_folder, question_path
from pystorm_source.records.standstill import Asked, RangeState, TaskState, encoded
from tests.observe.page.browser import opened
from tests.observe.page.runs import MARKUP, orders, renamed, write_run
from tests.observe.page.test_server import served
from tests.records.samples import progress

pytestmark = pytest.mark.timeout(240)

PICTURES = Path(__file__).resolve().parents[3] / "docs/pictures"
AXE = Path(axe_playwright_python.__file__).parent / "axe.min.js"
RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}}


def written(folder: Path, view: View, key: str = "") -> str:
    """The address of a file with that page."""
    path = folder / "page.html"
    path.write_text(document(view, key=key), encoding="utf-8")
    return path.as_uri()


def shop(batches: int = 120) -> View:
    return View.of([orders(batch) for batch in range(batches)], state="running")


def large() -> View:
    return View.of([progress(batch, components=50, partitions=1000, slow="bolt7") for batch in range(300)])


@pytest.mark.campaign
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("made", [shop, View], ids=["shop", "nothing yet"])
def test_it_is_accessible(browser, tmp_path, scheme, made):
    """By axe-core: contrast, names, roles, headings; with all tables open."""
    with opened(browser, written(tmp_path, made()), scheme) as page:
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        page.evaluate(AXE.read_text())
        found = page.evaluate(f"axe.run(document, {json.dumps(RULES)})")
    assert [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found["violations"]] == []


def test_the_headline_says_what_to_change(browser, tmp_path):
    with opened(browser, written(tmp_path, shop())) as page:
        assert page.text_content("#verdict") == "price is the bottleneck: 97 % busy"
        assert "give it more cores" in page.text_content("#advice")
        box = page.locator("#headline").bounding_box()
        assert box is not None and box["y"] + box["height"] < 450, "it is seen without scrolling"


def test_a_tuple_that_failed_is_counted_once(browser, tmp_path):
    """It has failed at its bolt, and its tree at the spout."""
    record = orders(119)
    failed = {"orders": Counts(failed=7), "price": Counts(failed=7, retries=7)}
    components = tuple(
        msgspec.structs.replace(each, total=failed.get(each.name, Counts())) for each in record.topology.components
    )
    topology = msgspec.structs.replace(record.topology, components=components)
    with opened(browser, written(tmp_path, View.of([msgspec.structs.replace(record, topology=topology)]))) as page:
        tile = page.locator("#tiles > div", has=page.locator("dt", has_text="Failed"))
        assert tile.inner_text().split() == ["Failed", "7", "7", "retried"]


@pytest.mark.parametrize(
    ("bottleneck", "verdict"),
    [
        (Bottleneck(why="waits for Spark", capacity=0.7), "The query waits for Spark, 70 % of the time"),
        (Bottleneck(component="parse", why="waits for upstream"), "parse is the bottleneck: it waits for its source"),
        (Bottleneck(component="parse", why="constructor"), "parse is the bottleneck: it constructor"),
    ],
    ids=lambda each: getattr(each, "why", ""),
)
def test_what_waits_is_named(browser, tmp_path, bottleneck, verdict):
    record = orders(119)
    waits = msgspec.structs.replace(record.topology, bottleneck=bottleneck)
    with opened(browser, written(tmp_path, View.of([msgspec.structs.replace(record, topology=waits)]))) as page:
        assert page.text_content("#verdict") == verdict


def test_while_a_breaker_is_open_the_service_is_named_with_its_next_probe(browser, tmp_path):
    down = OutageProgress(
        name="prices", rate="50/s", since=1e9, failed=10, calls=12, error="OSError: <refused>", probe_at=2e10
    )
    record = msgspec.structs.replace(orders(119), outages=(down,))
    with opened(browser, written(tmp_path, View.of([record], state="running"))) as page:
        verdict = page.text_content("#verdict")
        assert verdict.startswith("The circuit breaker of prices is open: the service has failed for ")
        assert "next probe in " in verdict
        assert "10 of 12 calls failed" in page.text_content("#advice")
        assert "OSError: <refused>" in page.text_content("#advice")
    with opened(browser, written(tmp_path, View.of([orders(119)], state="running"))) as page:
        assert page.text_content("#verdict").startswith("price is the bottleneck")


def test_a_limit_is_named_with_its_value_and_its_use(browser, tmp_path):
    record = orders(119)
    limit = LimitProgress(component="parse", name="prices", rate="50/s", calls=480, used=0.97, waits=0.96)
    parse = msgspec.structs.replace(record.topology.component("parse"), stalls={"rate_limit": 0.96})
    held = msgspec.structs.replace(
        record.topology,
        limits=(limit,),
        components=(parse, *(each for each in record.topology.components if each.name != "parse")),
        bottleneck=Bottleneck(component="parse", why="waits for a limit", capacity=0.97, limit="prices"),
    )
    with opened(browser, written(tmp_path, View.of([msgspec.structs.replace(record, topology=held)]))) as page:
        assert page.text_content("#verdict") == "parse waits for a limit: prices, 50/s, 97 % used"
        assert "rate limit 96 %" in page.text_content("#stalls")
        assert "rate limit" in page.text_content("#stall-legend")


def test_the_component_with_the_newest_error_is_chosen_before_the_bottleneck(browser, tmp_path):
    record = orders(119)
    error = ErrorRecord(text="ValueError: boom", at=4e9)
    components = tuple(
        msgspec.structs.replace(each, last_error=error) if each.name == "alerts" else each
        for each in record.topology.components
    )
    failed = msgspec.structs.replace(record.topology, components=components)
    with opened(browser, written(tmp_path, View.of([msgspec.structs.replace(record, topology=failed)]))) as page:
        assert page.text_content("#component h3") == "alerts"
        assert "boom" in page.text_content("#component pre")


def test_legends_have_the_newest_values_without_a_pointer(browser, tmp_path):
    with opened(browser, written(tmp_path, shop())) as page:
        values = page.eval_on_selector_all(".u-legend .u-value", "all => all.map(each => each.textContent)")
    assert len(values) >= 8
    assert all(any(character.isalnum() for character in value) for value in values), values


def test_a_run_without_a_bottleneck_says_so(browser, tmp_path):
    with opened(browser, written(tmp_path, shop(30))) as page:
        assert page.text_content("#verdict") == "Nothing holds the query back"


def test_arrows_are_as_thick_as_their_rate_and_boxes_coloured_by_capacity(browser, tmp_path):
    with opened(browser, written(tmp_path, shop())) as page:
        thick = {
            title.split(",")[0]: float(width)
            for title, width in page.eval_on_selector_all(
                "#graph .arrow",
                "all => all.map(arrow => ['title', 'path'].map(tag => arrow.querySelector(tag)))"
                ".map(([title, path]) => [title.textContent, path.getAttribute('stroke-width')])",
            )
        }
        fill = (
            "name => getComputedStyle([...document.querySelectorAll('.box')]"
            ".find(box => box.dataset.key === `box ${name}`).querySelector('rect')).fill"
        )
        colours = {page.evaluate(fill, name) for name in ("alerts", "parse", "price")}
    assert thick["orders → parse"] > thick["parse → fraud"] > thick["fraud → alerts"] > 1
    assert len(thick) == 9 and len(colours) == 3


def test_a_metric_has_three_digits_and_the_unit_of_its_name(browser, tmp_path):
    replace = msgspec.structs.replace
    wait, rows = Metric(count=5393, sum=13085.123, last=2.426792705002299), Metric(count=2, sum=123456, last=0.123456)
    record = orders(1)
    metrics = {"limit.price.wait.secs": wait, "rows": rows}
    components = tuple(replace(each, metrics=metrics) for each in record.topology.components)
    view = View.of([replace(record, topology=replace(record.topology, components=components))], state="running")
    with opened(browser, written(tmp_path, view)) as page:
        text = page.text_content("#component dl")
        assert "sum 3.63 h of 5,393 reports, last 2.43 s" in text
        assert "sum 123,456 of 2 reports, last 0.123" in text
        assert "a permit of limit 'price'" in page.get_attribute("#component dt[title]", "title")


def test_the_time_of_an_async_bolt_is_not_called_that_of_its_requests(browser, tmp_path):
    replace = msgspec.structs.replace
    record = orders(1)
    plain = tuple(replace(each, kind="bolt", pending_high_mark=0) for each in record.topology.components)
    requests = Counts(executed=10, ended_requests=10, request_seconds=1.2)
    asynchronous = tuple(replace(each, pending_high_mark=1234, batch=requests) for each in plain)
    told = {}
    for name, components in (("plain", plain), ("async", asynchronous)):
        view = View.of([replace(record, topology=replace(record.topology, components=components))], state="running")
        with opened(browser, written(tmp_path, view)) as page:
            told[name] = page.text_content("#component dl")
    assert "A call takes" in told["plain"] and "Requests at once" not in told["plain"]
    assert "A call takes" not in told["async"] and "Thread's work per request" in told["async"]
    assert "Requests at once, at most1,234" in told["async"]
    assert "A request takes120 ms" in told["async"] and "A request takes" not in told["plain"]


def test_a_component_is_chosen_by_keys_and_its_error_shown_with_frames(browser, tmp_path):
    with opened(browser, written(tmp_path, shop())) as page:
        assert page.text_content("#component h3") == "price"
        assert "shop/client.py:88 in price_of" in page.text_content("#component pre")
        page.locator(".box.chosen").focus()
        page.keyboard.press("ArrowLeft")
        assert page.text_content("#component h3") == "parse"
        page.keyboard.press("ArrowLeft")
        assert page.text_content("#component h3") == "orders"
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        assert page.text_content("#component h3") in {"price", "stock", "fraud"}
        assert page.evaluate("document.activeElement.classList.contains('chosen')")


def test_the_bottleneck_of_50_components_is_in_sight(browser, tmp_path):
    with opened(browser, written(tmp_path, large())) as page:
        assert page.locator(".box").count() == 50
        assert page.evaluate(
            """() => {
                const place = document.querySelector('#graph').getBoundingClientRect();
                const box = document.querySelector('.box.bottleneck').getBoundingClientRect();
                return box.left >= place.left && box.right <= place.right && box.top >= place.top;
            }"""
        )
        page.click("#fit")
        assert page.evaluate(
            "document.querySelector('#graph').scrollWidth <= document.querySelector('#graph').clientWidth + 1"
        )


@pytest.mark.parametrize("picture", ["components", "edges", "batches", "stalls-t", "slow-t", "backlogs-t"])
def test_each_picture_has_a_table_behind_it(browser, tmp_path, picture):
    with opened(browser, written(tmp_path, shop())) as page:
        page.click(f"details:has(#{picture}) > summary")
        assert page.locator(f"#{picture} caption").is_visible()
        assert page.locator(f"#{picture} tbody tr").count() >= 4


def test_names_with_markup_are_shown_as_text(browser, tmp_path):
    view = View.of([renamed(progress(batch, components=8), MARKUP) for batch in range(5)])
    with opened(browser, written(tmp_path, view)) as page:
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        shown = page.inner_text("body") + "".join(page.locator("#graph title").all_text_contents())
        for text in MARKUP:
            assert " ".join(text.split()) in " ".join(shown.split())
        assert page.title() == MARKUP[0] and page.text_content("h1") == MARKUP[0]
        assert page.locator("#owned, main img, main script, main iframe, main b, main i").count() == 0


def test_the_policy_refuses_what_is_not_the_pages_own(browser, tmp_path):
    """The same document with an element that a name could have made, had it not been text."""
    text = document(shop()).replace("<main>", "<main><script>document.title = 'owned'</script><img src='http://x/'>")
    (tmp_path / "page.html").write_text(text)
    page = browser.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_selector("body[data-drawn=yes]")
    assert page.title() == "Orders" and len([each for each in said if "Content Security Policy" in each]) == 2
    assert (
        page.evaluate("() => { try { document.body.innerHTML = 'x'; return 'set' } catch { return 'refused' } }")
        == "refused"
    )
    page.close()


@pytest.mark.parametrize(
    "record",
    [
        PystormProgress(),
        PystormProgress(seconds=float("nan"), pressure=float("inf"), rows=-1, backlog=2**63),
        PystormProgress(topology=TopologyProgress(components=(ComponentProgress(name="alone"),))),
        PystormProgress(
            topology=TopologyProgress(
                components=tuple(ComponentProgress(name=name) for name in ("a", "__proto__", "constructor", "")),
                edges=(
                    EdgeProgress(source="a", target="a"),
                    EdgeProgress(source="a", target="__proto__"),
                    EdgeProgress(source="__proto__", target="a", transferred=2**53),
                    EdgeProgress(source="gone", target="a"),
                    EdgeProgress(source="a", target="gone"),
                    EdgeProgress(source="constructor", target=""),
                    EdgeProgress(source="", target="constructor"),
                ),
            )
        ),
    ],
    ids=["empty", "no numbers", "one component", "cycles and names of JavaScript"],
)
def test_odd_records_are_drawn(browser, tmp_path, record):
    with opened(browser, written(tmp_path, View.of([record, record, record]))) as page:
        known = record.topology.components if record.topology else ()
        assert page.locator(".box").count() == len(known)


@pytest.mark.campaign
def test_a_served_page_follows_its_query_and_says_when_its_server_is_gone(browser, tmp_path):
    path = write_run(tmp_path / "Orders-1.jsonl", [orders(batch) for batch in range(30)], ended=False)
    page = browser.new_page()
    with served(tmp_path) as address:
        page.goto(address)
        assert page.text_content("#verdict") == "Nothing holds the query back"
        page.click("#components-d > summary")
        with path.open("a") as file:
            file.write(orders(119).to_json() + "\n")
        expect(page.locator("#verdict")).to_contain_text("price", timeout=30_000)
        assert page.locator("#components caption").is_visible(), "what was open stays open"
    page.wait_for_selector("#state.stale", timeout=60_000)
    page.close()


def test_another_run_can_be_chosen(browser, tmp_path):
    write_run(tmp_path / "Orders-1.jsonl", [orders(batch) for batch in range(3)])
    write_run(tmp_path / "Sample-2.jsonl", [progress(batch) for batch in range(3)])
    with served(tmp_path) as address, opened(browser, address) as page:
        assert page.text_content("h1") == "Sample"
        page.select_option("#runs", label="Orders-1")
        expect(page.locator("h1")).to_have_text("Orders", timeout=30_000)


def test_a_notebooks_frame_goes_on_where_the_one_before_it_was(browser, tmp_path):
    """Chosen component, open tables and place, in a frame that is replaced at each refresh."""
    (tmp_path / "notebook.html").write_text(f"<div id=output>{framed(shop(60), 'k', 700)}</div>")
    page = browser.new_page(viewport={"width": 1100, "height": 800})
    page.goto((tmp_path / "notebook.html").as_uri())
    frame = page.frame_locator("iframe")
    frame.locator("body[data-drawn=yes]").wait_for()
    frame.locator(".box", has_text="stock").click()
    frame.locator("#batches-d > summary").click()
    page.wait_for_function("(sessionStorage.getItem('k') ?? '').includes('batches-d')")
    page.evaluate("html => document.getElementById('output').innerHTML = html", framed(shop(120), "k", 700))
    frame.locator("h2", has_text="price is the bottleneck").wait_for()
    assert frame.locator("#component h3").text_content() == "stock"
    assert frame.locator("#batches caption").is_visible()
    page.close()


def test_a_run_that_has_only_begun_shows_its_topology(browser, tmp_path):
    run = RecordedRun()
    planned = orders(0).topology
    names = tuple(ComponentProgress(name=each.name, kind=each.kind) for each in planned.components)
    run.begin = Begin(topology="Orders", run="1", components=names, edges=planned.edges)
    with opened(browser, written(tmp_path, view_of(run, "x"))) as page:
        assert page.locator(".box").count() == 7
        assert page.text_content("#verdict") == "No micro-batch has ended yet"


@pytest.mark.quiet
def test_the_first_paint_of_50_components_and_1000_partitions_takes_less_than_a_second(browser, tmp_path):
    address = written(tmp_path, large())
    paints = []
    for _ in range(3):
        with opened(browser, address) as page:
            found = "performance.getEntriesByName('first-contentful-paint')"
            page.wait_for_function(f"{found}.length > 0")  # what is drawn may not be noted yet
            paints.append(page.evaluate(f"{found}[0].startTime"))
    print(f"first paint: {min(paints):.0f} ms")
    assert min(paints) < 1000


@contextmanager
def runner(run: str) -> Iterator[str]:
    """A folder for temporary files in which a run answers what its tasks do. Its path is short, as that of a socket."""
    task = TaskState(component="store", task=3, in_call=True, method="process", frames=(f"bolts.py:41 {MARKUP[0]}",))
    lines = [Asked(topology="Shop", run=run, process=1, asked=1), RangeState(place="partition '0'", tasks=(task,))]
    with tempfile.TemporaryDirectory() as temporary, socket.socket(socket.AF_UNIX) as listener:
        folder = Path(temporary) / private_folder(os.getpid()).name
        make_private(folder)
        listener.bind(str(question_path(folder, run)))
        listener.listen()

        def answer() -> None:
            with suppress(OSError):
                while True:
                    with listener.accept()[0] as asked:
                        asked.sendall(b"".join(encoded(line) + b"\n" for line in lines))

        answers = threading.Thread(target=answer, daemon=True)
        answers.start()
        yield temporary
        listener.shutdown(socket.SHUT_RDWR)
        answers.join(10)


def test_a_button_shows_what_the_tasks_of_the_run_do(browser, tmp_path):
    def of_run(run: str) -> list[PystormProgress]:
        record = orders(5)
        return [msgspec.structs.replace(record, topology=msgspec.structs.replace(record.topology, run=run))]

    write_run(tmp_path / "Shop-1.jsonl", of_run("5" * 32))
    other = write_run(tmp_path / "Other-1.jsonl", of_run("6" * 32))
    os.utime(other, (1, 1))
    with runner("5" * 32) as temporary, served(tmp_path, TMPDIR=temporary) as address, opened(browser, address) as page:
        page.click("#ask")
        page.locator("#stacks", has_text="topology 'Shop'").wait_for()
        shown = page.text_content("#stacks")
        assert "'store' is in process() at bolts.py:41" in shown and MARKUP[0] in shown
        page.select_option("#runs", label="Other-1")
        page.click("#ask")
        page.locator("#stacks", has_text="Its tasks cannot be asked").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_for_the_documents(browser, tmp_path, scheme):
    """They are written anew only if there is none: pixels depend on the machine's fonts."""
    target = PICTURES / f"page-{scheme}.png"
    view = msgspec.structs.replace(shop(), state="ended")
    with opened(browser, written(tmp_path, view), scheme) as page:
        page.set_viewport_size({"width": 1180, "height": 900})
        expect(page.locator("#chart-seconds canvas")).to_be_visible()
        png = page.screenshot()
    if not target.exists():
        target.write_bytes(_small(png))
    assert target.stat().st_size < 120_000


def _small(png: bytes) -> bytes:
    """With a palette of 128 colours."""
    out = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(128).save(out, "PNG", optimize=True)
    return out.getvalue()


def test_msgspec_reads_what_the_page_reads():
    view = shop()
    assert msgspec.json.decode(view.to_json(), type=View) == view
