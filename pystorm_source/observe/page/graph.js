// The topology: laid out by dagre, boxes coloured by capacity, arrows as thick as their rate.

const BOX = { width: 168, height: 62 };
// dagre gets numbers for names: a name may be one that JavaScript's objects have of themselves.
const graph = { shape: "", laid: null, ids: new Map(), chosen: "", fit: null };
const ROWS = "rows";

const edgeKey = (edge) => [edge.source, edge.stream ?? "default", edge.target ?? "", edge.grouping ?? ""];
const node = (name) => (graph.ids.has(name) ? graph.laid.node(graph.ids.get(name)) : undefined);

function layOut(components, edges) {
  const shape = JSON.stringify([components.map((component) => component.name), edges.map(edgeKey)]);
  if (shape === graph.shape) return;
  const laid = new dagre.graphlib.Graph({ multigraph: true });
  laid.setGraph({ rankdir: "LR", nodesep: 18, ranksep: 44, edgesep: 14, marginx: 12, marginy: 12 });
  laid.setDefaultEdgeLabel(() => ({}));
  const ids = new Map(components.map((component, i) => [component.name, String(i)]));
  for (const [name, id] of ids) laid.setNode(id, { ...BOX, name });
  if (edges.some((edge) => !edge.target)) laid.setNode(ROWS, { width: 84, height: 40 });
  edges.forEach((edge, i) => {
    const target = edge.target ? ids.get(edge.target) : ROWS;
    if (ids.has(edge.source) && target)
      laid.setEdge(
        ids.get(edge.source),
        target,
        {
          width: 46 + (shownStream(edge) ? 6.6 * Math.min(13, shownStream(edge).length + 1) : 0),
          height: 16,
          labelpos: "c",
          i,
        },
        String(i),
      );
  });
  dagre.layout(laid);
  graph.shape = shape;
  graph.laid = laid;
  graph.ids = ids;
  graph.fit = null;
}

const shownStream = (edge) => (edge.stream && edge.stream !== "default" ? edge.stream : "");

// Thicker with the logarithm: 10 tuples and 10 million are both to be seen.
const thickness = (transferred) => 1 + 1.3 * Math.log10(1 + (transferred ?? 0));

function drawGraph(topology, seconds, choose) {
  const components = topology.components ?? [];
  const edges = topology.edges ?? [];
  const place = at("graph");
  if (!components.length) {
    fill(place, html("p", { class: "none" }, "The components have not been counted yet."));
    return;
  }
  layOut(components, edges);
  const { width, height } = graph.laid.graph();
  const bottleneck = topology.bottleneck?.component ?? "";
  const first = graph.fit === null;
  if (first) graph.fit = width <= place.clientWidth * 1.5;
  const scale = graph.fit ? Math.min(1, place.clientWidth / width) : 1;
  const picture = svg(
    "svg",
    { width: width * scale, height: height * scale, viewBox: `0 0 ${width} ${height}` },
    ...graph.laid.edges().map((key) => arrow(graph.laid.edge(key), edges, seconds)),
    ...components.map((component) => box(component, component.name === bottleneck, choose)),
    graph.laid.hasNode(ROWS) ? rowsBox() : null,
  );
  fill(place, picture);
  at("fit").setAttribute("aria-pressed", String(graph.fit));
  if (first && !graph.fit && node(bottleneck)) show(bottleneck);
}

function show(name) {
  const place = at("graph");
  const { x, y } = node(name);
  place.scrollTo(x - place.clientWidth / 2, y - place.clientHeight / 2);
}

function arrow(laid, edges, seconds) {
  if (!laid.points?.length) return null;
  const edge = edges[laid.i];
  const [begin, ...points] = sideways(
    laid.points,
    node(edge.source),
    edge.target ? node(edge.target) : graph.laid.node(ROWS),
  );
  const width = thickness(edge.transferred);
  const end = points[points.length - 1];
  const back = end.x < begin.x ? -1 : 1;
  let path = `M ${begin.x} ${begin.y}`;
  let from = begin;
  for (const to of points) {
    const stop = to === end ? to.x - 7 * back : to.x;
    const middle = (from.x + stop) / 2;
    path += ` C ${middle} ${from.y} ${middle} ${to.y} ${stop} ${to.y}`;
    from = to;
  }
  const size = 4 + width;
  const rate = seconds > 0 ? `${compact((edge.transferred ?? 0) / seconds)}/s` : compact(edge.transferred);
  const stream = shownStream(edge);
  const grouping = edge.grouping ? `, ${edge.grouping}` : "";
  return svg(
    "g",
    { class: "arrow" },
    svg(
      "title",
      {},
      `${edge.source} → ${edge.target || "rows"}, stream ${edge.stream ?? "default"}${grouping}: ${count(edge.transferred)} tuples of the micro-batch`,
    ),
    svg("path", { d: path, "stroke-width": width.toFixed(2) }),
    svg("path", { class: "head", d: `M ${end.x} ${end.y} l ${-size * back * 1.4} ${-size} v ${2 * size} z` }),
    svg(
      "text",
      { x: laid.x, y: laid.y - 4 - width / 2, "text-anchor": "middle" },
      stream ? `${cut(stream, 13)} ${rate}` : rate,
    ),
  );
}

// An arrow leaves and arrives at the side of a box; dagre takes the nearest of its edges.
function sideways(points, source, target) {
  const back = target.x < source.x ? -1 : 1;
  const at = (box, near, side) => ({
    x: box.x + (side * back * box.width) / 2,
    y: box.y + Math.max(-box.height / 3, Math.min(box.height / 3, (near.y - box.y) / 4)),
  });
  if (source === target) return points;
  return [at(source, points[1], 1), ...points.slice(1, -1), at(target, points[points.length - 2], -1)];
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function box(component, isBottleneck, choose) {
  const { x, y } = node(component.name);
  const left = x - BOX.width / 2;
  const top = y - BOX.height / 2;
  const load = Math.min(1, component.capacity ?? 0);
  const chosen = component.name === graph.chosen;
  const spout = (component.kind ?? "bolt") === "spout";
  const pick = () => choose(component.name);
  const failed = component.lastError ? ", has an error" : "";
  const label = `${component.name}, ${component.kind ?? "bolt"}, capacity ${percent(component.capacity)}${isBottleneck ? ", the bottleneck" : ""}${failed}`;
  return svg(
    "g",
    {
      class: `box${isBottleneck ? " bottleneck" : ""}${chosen ? " chosen" : ""}`,
      role: "button",
      tabindex: chosen ? 0 : -1,
      "aria-pressed": String(chosen),
      "aria-label": label,
      "data-key": `box ${component.name}`,
      "--load": `${Math.round(load * 100)}%`,
      onclick: pick,
      onkeydown: (event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          pick();
        }
      },
    },
    svg("title", {}, label),
    svg("rect", { x: left, y: top, width: BOX.width, height: BOX.height, rx: spout ? 20 : 6 }),
    svg("text", { class: "name", x: left + 12, y: top + 20 }, cut(component.name, 19)),
    svg("text", { x: left + 12, y: top + 37 }, `${percent(component.capacity)} busy`),
    svg(
      "text",
      { x: left + 12, y: top + 53 },
      `${compact(component.batch?.executed)} calls, ${duration(component.execute?.mean)}`,
    ),
    component.lastError
      ? svg("text", { class: "mark", x: left + BOX.width - 12, y: top + 21, "text-anchor": "end" }, "⚠")
      : null,
    svg("rect", { class: "meter", x: left + 12, y: top + BOX.height - 5, width: (BOX.width - 24) * load, height: 3 }),
  );
}

function rowsBox() {
  const { x, y, width, height } = graph.laid.node(ROWS);
  return svg(
    "g",
    { class: "rows" },
    svg("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: 6 }),
    svg("text", { x, y: y + 4, "text-anchor": "middle" }, "rows"),
  );
}

// Arrow keys: along the arrows, or to the box above or below.
function neighbour(name, key) {
  const from = node(name);
  if (!from) return undefined;
  const id = graph.ids.get(name);
  const below = (other) => (key === "ArrowDown" ? other.y - from.y : from.y - other.y);
  const near =
    key === "ArrowRight"
      ? graph.laid.successors(id)
      : key === "ArrowLeft"
        ? graph.laid.predecessors(id)
        : graph.laid
            .nodes()
            .filter(
              (other) => Math.abs(graph.laid.node(other).x - from.x) < BOX.width && below(graph.laid.node(other)) > 0,
            );
  const found = near.filter((other) => other !== ROWS && other !== id).map((other) => graph.laid.node(other));
  return found.sort((a, b) => Math.abs(a.y - from.y) - Math.abs(b.y - from.y))[0]?.name;
}
