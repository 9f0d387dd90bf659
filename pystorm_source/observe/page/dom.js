// Elements and texts. Names of components are data: they become text nodes and attributes, never markup.

const SVG = "http://www.w3.org/2000/svg";

function put(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("--")) made.style.setProperty(name, value);
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(
    ...children
      .filter((each) => each !== null && each !== undefined)
      .map((each) => (each instanceof Node ? each : String(each))),
  );
  return made;
}

const html = (tag, attributes = {}, ...children) => put(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) => put(document.createElementNS(SVG, tag), attributes, children);
// A name may be that of a property which every object has, such as "constructor".
const own = (object, key) => (object && Object.hasOwn(object, key) ? object[key] : undefined);
const at = (id) => document.getElementById(id);
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Replaces what a place holds; what had the focus has it again if it is still there.
function fill(place, ...children) {
  const key = place.contains(document.activeElement) ? document.activeElement.dataset?.key : undefined;
  const [left, top] = [place.scrollLeft, place.scrollTop];
  place.replaceChildren(...children.filter((each) => each !== null && each !== undefined));
  place.scrollTo(left, top);
  if (key)
    [...place.querySelectorAll("[data-key]")].find((each) => each.dataset.key === key)?.focus({ preventScroll: true });
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const count = (number) => whole.format(number ?? 0);
const compact = (number) => ((number ?? 0) < 10000 ? count(number) : short.format(number));
const percent = (share) => `${Math.round((share ?? 0) * 100)} %`;
const decimal = (number, digits = 3) =>
  Number((number ?? 0).toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 6 });
const word = (name) => name.replaceAll("_", " ");

function duration(seconds) {
  if (!seconds) return "0";
  if (seconds < 0.001) return `${decimal(seconds * 1e6)} µs`;
  if (seconds < 1) return `${decimal(seconds * 1e3)} ms`;
  if (seconds < 120) return `${decimal(seconds)} s`;
  return seconds < 7200 ? `${decimal(seconds / 60)} min` : `${decimal(seconds / 3600)} h`;
}

function when(seconds) {
  return seconds > 1 ? new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC" : "";
}
