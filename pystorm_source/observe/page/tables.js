// The table behind each picture.

// columns: [heading, row => text, is a number?]
function table(caption, columns, rows, none) {
  if (!rows.length) return html("p", { class: "none" }, none ?? "None.");
  const head = columns.map(([heading, , number]) =>
    html("th", { scope: "col", class: number ? "number" : null }, heading),
  );
  const body = rows.map((row) =>
    html(
      "tr",
      {},
      ...columns.map(([, text, number], i) =>
        html(i ? "td" : "th", { class: number ? "number" : null, scope: i ? null : "row" }, text(row)),
      ),
    ),
  );
  return html(
    "table",
    {},
    html("caption", {}, caption),
    html("thead", {}, html("tr", {}, ...head)),
    html("tbody", {}, ...body),
  );
}

const COMPONENT_COLUMNS = [
  ["component", (c) => c.name],
  ["kind", (c) => c.kind ?? "bolt"],
  ["tasks", (c) => count(c.tasks ?? 1), true],
  ["capacity", (c) => percent(c.capacity), true],
  ["executed", (c) => count(c.batch?.executed), true],
  ["emitted", (c) => count(c.batch?.emitted), true],
  ["transferred", (c) => count(c.batch?.transferred), true],
  ["acked", (c) => count(c.batch?.acked), true],
  ["failed", (c) => count(c.batch?.failed), true],
  ["executed in all", (c) => count(c.total?.executed), true],
  ["mean of a call", (c) => duration(c.execute?.mean), true],
  ["99 % of calls", (c) => duration(c.execute?.p99), true],
  ["a request takes", (c) => (c.batch?.endedRequests ? duration(meanRequest(c)) : ""), true],
  ["complete, 99 %", (c) => duration(c.complete?.p99), true],
  ["fill of a batch", (c) => decimal(c.batchFill), true],
  ["most pending", (c) => count(c.pendingHighMark), true],
];

const LOSS_COLUMNS = [
  ["component", (c) => c.name],
  ["failed", (c) => count(c.total?.failed), true],
  ["retried", (c) => count(c.total?.retries), true],
  ["timed out", (c) => count(c.total?.timedOut), true],
  ["dead letters", (c) => count(c.total?.deadLetters), true],
  ["of these dropped", (c) => count(c.total?.dropped), true],
  ["skipped", (c) => count(c.total?.skipped), true],
  ["errors", (c) => count(c.total?.errors), true],
];

const LOSSES = ["failed", "retries", "timedOut", "deadLetters", "dropped", "skipped", "errors"];

const EDGE_COLUMNS = [
  ["from", (e) => e.source],
  ["stream", (e) => e.stream ?? "default"],
  ["to", (e) => e.target || "rows, to Spark"],
  ["grouping", (e) => e.grouping ?? ""],
  ["tuples of the micro-batch", (e) => count(e.transferred), true],
];

const SLOW_COLUMNS = [
  ["spout", (p) => p.spout],
  ["partition", (p) => p.partition],
  ["seconds", (p) => decimal(p.seconds), true],
  ["offsets", (p) => count(p.offsets), true],
  ["rows", (p) => count(p.rows), true],
];

function batchRows(series) {
  return series.batch.map((batch, i) => ({ batch, i, at: series.at[i] })).reverse();
}

function batchColumns(series) {
  const number = (name, text) => [name, (row) => (series[name][row.i] === null ? "" : text(series[name][row.i])), true];
  return [
    ["micro-batch", (row) => count(row.batch)],
    ["began", (row) => when(row.at)],
    number("seconds", decimal),
    number("target", decimal),
    number("rows", count),
    number("backlog", count),
    number("limit", count),
    number("budget", count),
    number("pressure", decimal),
    ["reason", (row) => word(series.reason[row.i])],
  ];
}
