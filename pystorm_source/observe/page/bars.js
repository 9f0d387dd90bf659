// Lengths and shares as bars, a row each, with its number in words.

const MOST_BARS = 20;

// rows: [{ name, value, text, hot, parts: [{ kind, share, title }] }]; scale: the value that is as long as the place.
function bars(rows, scale, none) {
  if (!rows.length) return html("p", { class: "none" }, none);
  const list = rows.slice(0, MOST_BARS).map((row) =>
    html(
      "li",
      { class: row.hot ? "hot" : null },
      html("span", { class: "bar-name", title: row.name }, row.name),
      html(
        "span",
        { class: "track", "aria-hidden": "true" },
        ...(row.parts ?? [{ kind: "plain", share: scale ? row.value / scale : 0 }]).map((part) =>
          html("span", {
            class: `part ${part.kind}`,
            "--share": `${Math.min(100, 100 * part.share)}%`,
            title: part.title,
          }),
        ),
      ),
      html("span", { class: "bar-text" }, row.text),
    ),
  );
  const rest = rows.length - list.length;
  if (rest > 0) list.push(html("li", { class: "rest" }, `${count(rest)} more in the table`));
  return html("ul", { class: "bars" }, ...list);
}

// A place in the list is a colour of the page. Order: new ones at the end, so that colours stay.
const STALLS = [
  "downstream_full",
  "output_full",
  "max_spout_pending",
  "input_empty",
  "nothing_to_emit",
  "async_max_pending",
  "rate_limit",
  "circuit_breaker",
  "process_full",
  "process_busy",
  "source_unavailable",
];

function stallKind(reason) {
  const known = STALLS.indexOf(reason);
  return `stall-${known < 0 ? "other" : known}`;
}

// Busy first, then what it waits for; shares of one task's time may add up to more than 1 if several tasks are summed.
function timeBars(components) {
  return [...components]
    .sort((a, b) => (b.capacity ?? 0) - (a.capacity ?? 0))
    .map((component) => {
      const stalls = Object.entries(component.stalls ?? {}).sort((a, b) => b[1] - a[1]);
      const sum = Math.max(1, (component.capacity ?? 0) + stalls.reduce((all, [, share]) => all + share, 0));
      const most = stalls.length && stalls[0][1] >= 0.01 ? `, ${word(stalls[0][0])} ${percent(stalls[0][1])}` : "";
      return {
        name: component.name,
        hot: (component.capacity ?? 0) >= 0.9,
        text: `busy ${percent(component.capacity)}${most}`,
        parts: [
          { kind: "busy", share: (component.capacity ?? 0) / sum, title: `busy ${percent(component.capacity)}` },
          ...stalls.map(([reason, share]) => ({
            kind: stallKind(reason),
            share: share / sum,
            title: `${word(reason)} ${percent(share)}`,
          })),
        ],
      };
    });
}

function queueBars(components) {
  return components
    .filter((component) => component.queueCapacity)
    .map((component) => ({
      name: component.name,
      value: (component.queueHighMark ?? 0) / component.queueCapacity,
      component,
    }))
    .sort((a, b) => b.value - a.value)
    .map(({ name, value, component }) => ({
      name,
      value,
      hot: value >= 1,
      text: `${count(component.queueHighMark)} of ${count(component.queueCapacity)}`,
    }));
}

function stallLegend(components) {
  const reasons = new Set(components.flatMap((component) => Object.keys(component.stalls ?? {})));
  return [["busy", "busy"], ...[...reasons].sort().map((reason) => [stallKind(reason), word(reason)])].map(
    ([kind, text]) =>
      html("span", { class: "key" }, html("span", { class: `swatch part ${kind}`, "aria-hidden": "true" }), text),
  );
}
