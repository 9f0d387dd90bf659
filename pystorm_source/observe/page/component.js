// The chosen component: numbers, capacity over time, its last error.

function drawComponent(component) {
  if (!component) return fill(at("component"));
  const facts = [
    ["Capacity", percent(component.capacity)],
    ["Tasks in a worker", count(component.tasks ?? 1)],
    ["Calls", count(component.batch?.executed)],
    [
      isAsync(component) ? "Thread's work per request" : "A call takes",
      `${duration(component.execute?.mean)}; 99 %: ${duration(component.execute?.p99)}`,
      isAsync(component) ? "Without the time that the request waits for its service" : "",
    ],
    component.batch?.endedRequests ? ["A request takes", duration(meanRequest(component))] : null,
    isAsync(component) ? ["Requests at once, at most", count(component.pendingHighMark)] : null,
    ...processFacts(component),
    ...cacheFacts(component),
    component.complete?.count
      ? ["A tree takes", `${duration(component.complete.mean)}; 99 %: ${duration(component.complete.p99)}`]
      : null,
    [
      "Emitted",
      Object.entries(component.streams ?? {})
        .map(([name, stream]) => `${name} ${count(stream.emitted)}`)
        .join(", ") || count(component.batch?.emitted),
    ],
    component.queueCapacity
      ? ["Queue, at its fullest", `${count(component.queueHighMark)} of ${count(component.queueCapacity)}`]
      : null,
    ["Since it began", `${count(component.total?.executed)} calls, ${count(component.total?.failed)} failed`],
    ...Object.entries(component.metrics ?? {}).map(([name, metric]) => [name, metricText(name, metric), about(name)]),
  ].filter(Boolean);
  fill(
    at("component"),
    html("div", {}, html("h3", {}, component.name), spark(own(view.capacity, component.name) ?? [])),
    html(
      "dl",
      {},
      ...facts.flatMap(([name, text, title]) => [html("dt", title ? { title } : {}, name), html("dd", {}, text)]),
    ),
    failure(component.name, own(view.errors, component.name) ?? component.lastError),
  );
}

// Of a bolt with processes=: what its processes and the way to them do.
function processFacts(component) {
  if (!component.processes) return [];
  return [
    ["Processes", count(component.processes), "Its capacity is that of the busiest of them"],
    ["Link", `${percent(component.link)} of the task's own thread`, "Sends tuples there and takes what comes back"],
    ["Tuples in a process, at most", count(component.awayHighMark)],
    [
      "Not begun, at most (halt lag)",
      `${count(component.unreadHighMark)} of ${count(component.queueCapacity)}`,
      "Tuples that are still to come for the bolt when its task stops sending",
    ],
  ];
}

// Of each cache that it asks: the share of look-ups without a call, and the calls.
function cacheFacts(component) {
  return (view.last?.topology?.caches ?? [])
    .filter((cache) => cache.component === component.name)
    .map((cache) => {
      const [hits, misses, refreshes] = [cache.hits ?? 0, cache.misses ?? 0, cache.refreshes ?? 0];
      const entries = cache.entries ? `; ${count(cache.entries)} entries` : "";
      return [
        `Cache ${cache.name}`,
        `${percent(hits / Math.max(1, hits + misses + refreshes))} hits; ${count(misses + refreshes)} calls${entries}`,
        `${count(hits)} look-ups made no call; ${count(misses)} calls for what was not there, ` +
          `${count(refreshes)} for what was stale. Entries are those of the largest process`,
      ];
    });
}

// Of bolts, an AsyncBolt alone has requests under way.
const isAsync = (component) => component.kind !== "spout" && component.pendingHighMark > 0;

const meanRequest = (component) => (component.batch.requestSeconds ?? 0) / component.batch.endedRequests;

// What a component has reported by report_metric; the end of a name tells the unit.
function metricText(name, metric) {
  if (metric.last !== undefined && typeof metric.last !== "number") return String(metric.last);
  const shown = unitOf(name);
  const reports = metric.count ? ` of ${count(metric.count)} reports` : "";
  return `sum ${shown(metric.sum ?? 0)}${reports}, last ${shown(metric.last ?? 0)}`;
}

function unitOf(name) {
  if (/[._](secs|seconds)$/.test(name)) return duration;
  if (/[._](millis|ms)$/.test(name)) return (number) => duration(number / 1e3);
  return (number) => (Number.isInteger(number) ? count(number) : decimal(number));
}

function about(name) {
  const limit = /^limit\.(.+)\.wait\.secs$/.exec(name);
  return limit
    ? `How long calls have waited for a permit of limit '${limit[1]}': sum, of all calls of all tasks, which wait at ` +
        "the same time; last, of the newest call"
    : "";
}

// Its capacity over the last micro-batches; the number stands in the table.
function spark(shares) {
  if (shares.length < 2) return null;
  const points = shares
    .map((share, i) => `${(i * 240) / (shares.length - 1)},${42 - 40 * Math.min(1, share ?? 0)}`)
    .join(" ");
  const caption = `Capacity over ${count(shares.length)} micro-batches, 0 to 100 %`;
  const picture = svg(
    "svg",
    {
      class: "spark",
      preserveAspectRatio: "none",
      viewBox: "0 0 240 44",
      role: "img",
      "aria-label": `${caption}, now ${percent(shares[shares.length - 1])}`,
    },
    svg("line", { x1: 0, y1: 2, x2: 240, y2: 2 }),
    svg("line", { x1: 0, y1: 42, x2: 240, y2: 42 }),
    svg("polyline", { points }),
  );
  return html("figure", {}, picture, html("figcaption", {}, caption));
}

function failure(name, error) {
  if (!error) return null;
  const frames = error.frames ?? [];
  return html(
    "div",
    { class: "failure" },
    html("p", {}, html("strong", {}, name), ` · ${when(error.at)}`),
    html("pre", { tabindex: 0 }, [...frames.map((frame) => `  ${frame}`), error.text].join("\n")),
  );
}
