// Micro-batches over time, drawn by uPlot. Colours are those of the page, light or dark.

const charts = new Map();
const HEIGHT = 180;

// lines: [{ label, values, color, width, dash, fill, text, gaps }], over seconds since 1970.
function chart(place, times, lines, label) {
  if (times.length < 2 || lines.every((line) => line.values.every((value) => value === null))) {
    charts.get(place.id)?.plot.destroy();
    charts.delete(place.id);
    fill(place, html("p", { class: "none" }, times.length < 2 ? "Two micro-batches are needed." : "There is none."));
    return;
  }
  const data = [times, ...lines.map((line) => line.values)];
  const shape = lines.map((line) => line.label).join();
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", label);
  const before = charts.get(place.id);
  if (before?.shape === shape) {
    before.plot.setData(data);
    return;
  }
  before?.plot.destroy();
  place.replaceChildren();
  const options = {
    width: Math.max(200, place.clientWidth),
    height: HEIGHT,
    series: [{ label: "time", value: (plot, x) => when(x ?? newestOf(plot.data[0])) }],
    axes: axes(),
    legend: { live: true },
    cursor: { drag: { setScale: false } },
    scales: { x: { time: true }, y: { range: (_, low, high) => [0, (high || 1) * 1.1] } },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
  };
  for (const line of lines) {
    options.series.push({
      label: line.label,
      width: line.width ?? 2,
      dash: line.dash,
      points: { show: times.length < 40 && !line.dash, size: 5 },
      stroke: () => color(line.color),
      fill: line.fill ? () => color(line.fill) : undefined,
      spanGaps: !line.gaps,
      // Without the pointer on the chart the legend has the newest value.
      value: (plot, value, series, place) => {
        const shown = place === null || place === undefined ? newestOf(plot.data[series]) : value;
        return shown === null || shown === undefined ? "unknown" : (line.text ?? compact)(shown);
      },
    });
  }
  charts.set(place.id, { shape, plot: new uPlot(options, data, place) });
}

function newestOf(values) {
  return [...values].reverse().find((value) => value !== null && value !== undefined);
}

function axes() {
  const paint = {
    stroke: () => color("--soft"),
    grid: { stroke: () => color("--line"), width: 1 },
    ticks: { stroke: () => color("--line"), width: 1 },
    font: "12px system-ui, sans-serif",
  };
  return [
    {
      ...paint,
      space: 80,
      values: (_, times) =>
        times.map((seconds) => (seconds > 1 ? new Date(seconds * 1000).toISOString().slice(11, 19) : "")),
    },
    {
      ...paint,
      size: 58,
      values: (_, values) => values.map((value) => (value >= 10000 ? short.format(value) : decimal(value))),
    },
  ];
}

function drawCharts(series) {
  const times = series.at;
  const target = {
    label: "target",
    values: series.target,
    color: "--hot-line",
    dash: [6, 4],
    width: 1.5,
    text: duration,
  };
  const rate = series.rows.map((rows, i) => (series.seconds[i] > 0 ? rows / series.seconds[i] : null));
  const last = times.length - 1;
  const newest = (values, text) => (last < 0 || values[last] === null ? "unknown" : text(values[last]));
  chart(
    at("chart-seconds"),
    times,
    [{ label: "duration", values: series.seconds, color: "--first", fill: "--first-soft", text: duration }, target],
    `Duration of micro-batches; the last: ${newest(series.seconds, duration)}, target ${newest(series.target, duration)}`,
  );
  chart(
    at("chart-rows"),
    times,
    [{ label: "rows per second", values: rate, color: "--first", fill: "--first-soft" }],
    `Rows per second; the last: ${newest(rate, compact)}`,
  );
  const granted = series.budget.some((value) => value !== null) ? series.budget : series.limit;
  chart(
    at("chart-backlog"),
    times,
    [
      { label: "backlog", values: series.backlog, color: "--first", fill: "--first-soft", gaps: true },
      { label: granted === series.budget ? "budget" : "limit", values: granted, color: "--second" },
    ],
    `Backlog in offsets; the last: ${newest(series.backlog, compact)}, granted ${newest(granted, compact)}`,
  );
  chart(
    at("chart-pressure"),
    times,
    [{ label: "pressure", values: series.pressure, color: "--first", fill: "--first-soft", text: decimal }],
    `Pressure; the last: ${newest(series.pressure, decimal)}`,
  );
}

function resizeCharts() {
  for (const [id, { plot }] of charts) {
    const width = Math.max(200, at(id).clientWidth);
    if (width !== plot.width) plot.setSize({ width, height: HEIGHT });
  }
}

function repaintCharts() {
  for (const { plot } of charts.values()) plot.redraw(false, true);
}
