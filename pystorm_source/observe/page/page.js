// Puts the page together, and keeps it up to date if a server has it.

let view = JSON.parse(at("view").textContent);
let missed = 0;
const polls = document.body.dataset.poll;
const stateKey = document.body.dataset.key;

function draw() {
  const last = view.last ?? {};
  const topology = last.topology ?? {};
  document.title = view.title || "pystorm source";
  at("title").textContent = view.title || "pystorm source";
  drawState();
  drawRuns();
  drawHeadline(last, topology);
  const components = topology.components ?? [];
  if (!components.some((component) => component.name === graph.chosen))
    graph.chosen = lastFailed(components) || topology.bottleneck?.component || components[0]?.name || "";
  drawGraph(topology, view.counted_seconds, choose);
  drawComponent(components.find((component) => component.name === graph.chosen));
  fill(
    at("graph-legend"),
    "Colour: capacity ",
    html("span", { class: "ramp", "aria-hidden": "true" }),
    " 0 to 100 %. Arrows: the thicker, the more tuples.",
  );
  fill(at("components"), table("Components, of one micro-batch", COMPONENT_COLUMNS, components));
  fill(at("edges"), table("Subscriptions", EDGE_COLUMNS, topology.edges ?? []));
  const series = columns(view.series ?? {});
  drawCharts(series);
  fill(at("admission"), admissionText(last));
  fill(at("batches"), table("Micro-batches, the newest first", batchColumns(series), batchRows(series)));
  fill(at("stall-legend"), ...stallLegend(components));
  fill(at("stalls"), bars(timeBars(components), 1, "Nothing is known yet."));
  fill(at("queues"), bars(queueBars(components), 1, "No component has a queue."));
  fill(at("stalls-t"), table("Time and queues", timeColumns(components), components));
  drawPartitions(last, topology);
  drawErrors(components);
}

// The component with the newest error.
function lastFailed(components) {
  const failed = components.filter((component) => own(view.errors, component.name));
  return failed.sort((a, b) => view.errors[b.name].at - view.errors[a.name].at)[0]?.name;
}

function columns(series) {
  const names = ["batch", "at", "seconds", "target", "rows", "backlog", "budget", "limit", "pressure", "reason"];
  return Object.fromEntries(names.map((name) => [name, series[name] ?? []]));
}

function timeColumns(components) {
  const reasons = [...new Set(components.flatMap((component) => Object.keys(component.stalls ?? {})))].sort();
  return [
    ["component", (c) => c.name],
    ["busy", (c) => percent(c.capacity), true],
    ...reasons.map((reason) => [word(reason), (c) => percent(own(c.stalls, reason)), true]),
    ["queue, at most", (c) => count(c.queueHighMark), true],
    ["of", (c) => count(c.queueCapacity), true],
  ];
}

function drawPartitions(last, topology) {
  const slow = topology.slowPartitions ?? [];
  const longest = Math.max(0, ...slow.map((each) => each.seconds ?? 0));
  fill(
    at("slow"),
    bars(
      slow.map((each) => ({
        name: `${each.spout} ${each.partition}`,
        value: each.seconds ?? 0,
        text: `${duration(each.seconds)}, ${count(each.offsets)} offsets`,
      })),
      longest,
      "None was reported.",
    ),
  );
  fill(at("slow-t"), table("The slowest partitions", SLOW_COLUMNS, slow));
  const backlog = Object.entries(last.backlogByPartition ?? {}).sort((a, b) => b[1] - a[1]);
  fill(
    at("backlogs"),
    bars(
      backlog.map(([name, value]) => ({ name, value, text: count(value) })),
      backlog[0]?.[1] ?? 0,
      last.backlog ? "There are too many partitions to name them." : "There is no backlog.",
    ),
  );
  fill(
    at("backlogs-t"),
    table(
      "Backlog by partition",
      [
        ["partition", (row) => row[0]],
        ["offsets", (row) => count(row[1]), true],
      ],
      backlog,
    ),
  );
}

function drawErrors(components) {
  const errors = Object.entries(view.errors ?? {}).sort((a, b) => b[1].at - a[1].at);
  fill(
    at("errors"),
    ...(errors.length
      ? errors.map(([name, error]) => failure(name, error))
      : [html("p", { class: "none" }, "No component has raised an exception.")]),
  );
  fill(
    at("losses"),
    table(
      "Failures since the run began",
      LOSS_COLUMNS,
      components.filter((component) => LOSSES.some((name) => component.total?.[name])),
      "No tuple has failed.",
    ),
  );
}

function choose(name) {
  graph.chosen = name;
  const topology = view.last?.topology ?? {};
  drawGraph(topology, view.counted_seconds, choose);
  drawComponent((topology.components ?? []).find((component) => component.name === name));
  at("graph").querySelector(".chosen")?.focus({ preventScroll: false });
  remember();
}

// A newer page in the same place goes on where this one was: what is chosen, open, and how far it is scrolled.
function remember() {
  if (!stateKey) return;
  const open = [...document.querySelectorAll("details[open]")].map((each) => each.id);
  try {
    sessionStorage.setItem(stateKey, JSON.stringify({ chosen: graph.chosen, open, scroll: scrollY, fit: graph.fit }));
  } catch {
    /* a frame without an origin has no storage */
  }
}

function recall() {
  try {
    const { chosen, open, scroll, fit } = JSON.parse(sessionStorage.getItem(stateKey) ?? "{}");
    graph.chosen = chosen ?? "";
    for (const id of open ?? []) if (at(id)) at(id).open = true;
    return { scroll, fit };
  } catch {
    return {};
  }
}

let chosenRun = "";

async function poll() {
  try {
    const answer = await fetch(`${polls}?run=${encodeURIComponent(chosenRun)}`, {
      cache: "no-store",
      headers: version ? { "If-None-Match": version } : {},
    });
    if (answer.status === 200) {
      view = await answer.json();
      version = answer.headers.get("ETag");
      missed = 0;
      draw();
    } else {
      missed = answer.status === 304 ? 0 : missed + 1;
      drawState();
    }
  } catch {
    missed += 1;
    drawState();
  }
  timer = setTimeout(poll, document.body.dataset.every * 1000);
}

let version = "";
let timer = 0;

at("runs").addEventListener("change", (event) => {
  chosenRun = event.target.value;
  version = "";
  clearTimeout(timer);
  event.target.blur();
  poll();
});
at("fit").addEventListener("click", () => {
  graph.fit = !graph.fit;
  drawGraph(view.last?.topology ?? {}, view.counted_seconds, choose);
  if (!graph.fit && node(graph.chosen)) show(graph.chosen);
  remember();
});
at("graph").addEventListener("keydown", (event) => {
  if (!event.key.startsWith("Arrow")) return;
  const next = neighbour(graph.chosen, event.key);
  if (next === undefined) return;
  event.preventDefault();
  choose(next);
});
// The tasks of a run that has ended, or runs on another machine, cannot be asked: the server says so.
at("ask").addEventListener("click", async () => {
  at("ask").disabled = true;
  try {
    const answer = await fetch(`stacks?run=${encodeURIComponent(chosenRun)}`, { cache: "no-store" });
    at("stacks").textContent = answer.ok ? await answer.text() : "The server has not answered.";
  } catch {
    at("stacks").textContent = "The server has not answered.";
  }
  at("ask").disabled = false;
});
addEventListener("resize", () => {
  resizeCharts();
  drawGraph(view.last?.topology ?? {}, view.counted_seconds, choose);
});
addEventListener("scrollend", remember);
document.addEventListener("toggle", remember, true);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaintCharts);

at("standstill").hidden = !polls;
const recalled = stateKey ? recall() : {};
draw();
if (recalled.fit !== undefined && recalled.fit !== null && recalled.fit !== graph.fit) at("fit").click();
if (recalled.scroll) scrollTo(0, recalled.scroll);
if (polls) timer = setTimeout(poll, document.body.dataset.every * 1000);
document.body.dataset.drawn = "yes";
