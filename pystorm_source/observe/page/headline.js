// The top of the page: where the run stands, what holds it back, what to change.

function drawState() {
  const times = view.series?.at ?? [];
  const newest = times[times.length - 1];
  const parts = [];
  if (view.state === "ended") parts.push("ended");
  else if (view.state) parts.push(view.state);
  if (view.last) parts.push(`micro-batch ${count(view.last.batchId ?? -1)}`);
  if (newest > 1)
    parts.push(
      view.state === "running"
        ? `began ${duration(Math.max(0, Math.round(Date.now() / 1000 - newest)))} ago`
        : `began ${when(newest)}`,
    );
  if (view.run) parts.push(`run ${cut(view.run, 16)}`);
  if (missed > 2) parts.push("its server does not answer: this is the last that was known");
  at("state").textContent = parts.join(" · ") || "No micro-batch has ended yet.";
  at("state").classList.toggle("stale", missed > 2);
}

function drawRuns() {
  const runs = Object.entries(view.runs ?? {});
  at("choice").hidden = runs.length < 2;
  const options = runs.map(([id, title]) =>
    html("option", { value: id, selected: id === (chosenRun || runs[0][0]) }, title),
  );
  if (document.activeElement !== at("runs")) fill(at("runs"), ...options);
}

function drawHeadline(last, topology) {
  const { verdict, advice, level } = headline(last, topology);
  if (at("verdict").textContent !== verdict) at("verdict").textContent = verdict;
  at("advice").textContent = advice;
  at("headline").className = level;
  const notes = [];
  if (topology.whole === false)
    notes.push("Not all ranges of this micro-batch were reported: the counts are of those that were.");
  if (topology.shortened?.length)
    notes.push(`Left out, as the record would have been too long: ${topology.shortened.join(", ")}.`);
  fill(at("notes"), ...notes.map((note) => html("li", {}, note)));
  const components = topology.components ?? [];
  const sum = (name, of = components) => of.reduce((all, component) => all + (component.total?.[name] ?? 0), 0);
  // A tuple that fails does so at its bolt, and its tree at the spout: once.
  const spouts = components.filter((component) => component.kind === "spout");
  const tiles = [
    [
      "Duration",
      duration(last.seconds),
      last.target ? `target ${duration(last.target)}` : "no target",
      last.target && last.seconds > last.target * 1.1,
    ],
    [
      "Rows per second",
      compact(last.seconds ? (last.rows ?? 0) / last.seconds : 0),
      `${count(last.rows)} in the micro-batch`,
    ],
    [
      "Backlog",
      last.admitted === false ? "unknown" : compact(last.backlog),
      last.admitted === false ? "a restart runs it again" : last.pressure === undefined ? "offsets" : `pressure ${decimal(last.pressure)}`,
      last.pressure > 1.5,
    ],
    ["Failed", compact(sum("failed", spouts)), `${compact(sum("retries"))} retried`],
    [
      "Dead letters",
      compact(sum("deadLetters")),
      `${compact(sum("dropped"))} dropped, ${compact(sum("skipped"))} skipped`,
      sum("deadLetters") > 0,
    ],
    ["Errors", compact(sum("errors")), "exceptions", sum("errors") > 0],
  ];
  fill(
    at("tiles"),
    ...tiles.map(([name, value, more, bad]) =>
      html("div", { class: bad ? "bad" : null }, html("dt", {}, name), html("dd", {}, value, html("small", {}, more))),
    ),
  );
}

const WAITS = { "waits for downstream": "waits for what it calls", "waits for upstream": "waits for its source" };

function limitText(topology, bottleneck) {
  const { rate } = (topology.limits ?? []).find((limit) => limit.name === bottleneck.limit) ?? {};
  return `${bottleneck.limit}${rate ? `, ${rate}` : ""}, ${percent(bottleneck.capacity)} used`;
}

function outageHeadline({ name, rate, since, failed, calls, error, probeAt }) {
  const now = Date.now() / 1000;
  const failing = duration(Math.max(0, Math.round(now - (since ?? now))));
  const wait = Math.ceil((probeAt ?? now) - now);
  const probe = wait > 0 ? `next probe in ${duration(wait)}` : "a probe tests it now";
  return {
    verdict: `The circuit breaker of ${name} is open: the service has failed for ${failing}; ${probe}`,
    advice: `${count(failed)} of ${count(calls)} calls failed, so the service is not called (limit ${rate}). Look at the service. The last error: ${error || "none was given"}`,
    level: "hot",
  };
}

function headline(last, topology) {
  if (last.outages?.length && view.state !== "ended") return outageHeadline(last.outages[0]);
  const bottleneck = topology.bottleneck;
  if (bottleneck) {
    const name = bottleneck.component;
    const why = bottleneck.why ?? "busy";
    if (bottleneck.limit)
      return { verdict: `${name} ${why}: ${limitText(topology, bottleneck)}`, advice: bottleneck.advice ?? "", level: "hot" };
    const reason = why === "busy" ? `${percent(bottleneck.capacity)} busy` : `it ${own(WAITS, why) ?? why}`;
    const verdict = name
      ? `${name} is the bottleneck: ${reason}`
      : `The query ${why === "busy" ? "waits for Spark" : why}, ${percent(bottleneck.capacity)} of the time`;
    return {
      verdict,
      advice: bottleneck.advice ?? "",
      level: (bottleneck.capacity ?? 0) >= 0.9 || why !== "busy" ? "hot" : "warm",
    };
  }
  if (!view.last || !view.series.at.some((time) => time > 1))
    return {
      verdict: "No micro-batch has ended yet",
      advice: "The page shows the first one when it has.",
      level: "calm",
    };
  if ((topology.batch ?? -1) < 0)
    return {
      verdict: "The components have not been counted yet",
      advice: "The counts of a micro-batch come with the next one.",
      level: "calm",
    };
  if (last.reason && last.reason !== "none")
    return {
      verdict: "No component holds the query back",
      advice: `What a micro-batch reads is limited: ${word(last.reason)}.`,
      level: "calm",
    };
  return { verdict: "Nothing holds the query back", advice: "Nothing needs to be changed.", level: "calm" };
}

function admissionText(last) {
  if (!view.last) return "";
  const limit =
    last.limit === undefined || last.limit === null
      ? "A micro-batch may read any number of offsets"
      : `A micro-batch may read ${count(last.limit)} offsets`;
  const why = last.reason && last.reason !== "none" ? `; reason: ${word(last.reason)}` : "";
  const held = Object.entries(last.throttledBy ?? {}).map(
    ([reason, partitions]) => `${count(partitions)} by ${word(reason)}`,
  );
  const none = "No partition leaves a backlog behind.";
  return `${limit}${why}. ${held.length ? `Partitions that leave a backlog behind: ${held.join(", ")}.` : none}`;
}
