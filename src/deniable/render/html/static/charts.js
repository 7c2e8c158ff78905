// Charts drawn in the page. Text is only ever set as text.
const SVG = "http://www.w3.org/2000/svg", WIDE = 740;

/** Make an HTML element. */
export function html(name, set = {}, ...children) {
  const made = Object.assign(document.createElement(name), set);
  made.append(...children);
  return made;
}

/** Make an SVG element. */
export function shape(name, set = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(set)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const NARROW = 330; // as wide as a card on a phone
const frame = (width, height, label, ...children) =>
  shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, ...children);
/** Draw a chart for wide and for narrow windows, as render/svg_marks.py does; the style hides one. */
const responsive = (draw) => html("div", { className: "chart" },
  html("div", { className: "wide" }, draw(WIDE)), html("div", { className: "narrow" }, draw(NARROW)));
const words = (x, y, text, kind = "small", anchor = "start") =>
  shape("text", { x, y, class: kind, "text-anchor": anchor }, text);
export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)}%`;
export const grouped = (count) => count.toLocaleString("en-GB");

/** A line across the chart, with its number on the left. */
const gridLine = (left, right, y, label) => [
  shape("line", { class: "grid", x1: left, x2: right, y1: y, y2: y }), words(left - 6, y + 4, label, "small", "end")];

/** Draw rows of bits. rows: {name, bits, from}; a bit that differs from that of `from` is ringed. */
export const bitRows = (rows) => responsive((width) => {
  const tall = 66, size = width / rows[0].bits.length, gap = size / 10;
  const body = rows.flatMap(({ name, bits, from }, r) => [
    words(0, r * tall + 18, name, ""),
    ...bits.map((bit, i) => shape("rect", {
      x: i * size + gap, y: r * tall + 28, width: size - 2 * gap, height: 28, rx: 3,
      class: `bit${bit ? " set" : ""}${from && from[i] !== bit ? " lie" : ""}`,
    })),
  ]);
  const label = rows.map(({ name, bits }) => `${name}: ${bits.map(Number).join("")}`).join("; ");
  return frame(width, rows.length * tall, label, ...body);
});

/** Draw in which share of reports each bit was 1. expected: shares, drawn as lines across. */
export const bitBars = (counts, reports, set, expected) => responsive((width) => {
  const left = 44, top = 26, bottom = 190, size = (width - left) / counts.length, gap = size / 10;
  const y = (share) => bottom - (bottom - top) * share;
  const grid = [0, 0.5, 1].flatMap((share) => gridLine(left, width, y(share), percent(share, 0)));
  const lines = expected.map((share) =>
    shape("line", { class: "threshold", x1: left, x2: width, y1: y(share), y2: y(share) }));
  const bars = counts.map((count, i) => shape("rect", {
    class: `column${set[i] ? " set" : ""}`, x: left + i * size + gap, width: size - 2 * gap,
    y: y(count / reports), height: bottom - y(count / reports),
  }));
  const label = counts.map((count) => percent(count / reports, 0)).join(", ");
  return frame(width, bottom + 8, `Share of ${grouped(reports)} reports in which each bit is 1: ${label}`,
    words(0, 12, "share of reports in which the bit is 1"), ...grid, ...bars, ...lines);
});

/** Draw estimates for crowds of growing size. points: {clients, estimate, low, high} */
export const sharpening = (points, truth) => responsive((width) => {
  const left = 44, top = 26, bottom = 280, every = width === WIDE ? 2 : 4;
  const step = [0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5].find((size) => size >= truth), most = 2 * step, least = -most / 3;
  const first = Math.log(points[0].clients), last = Math.log(points.at(-1).clients);
  const x = ({ clients }) => left + 20 + (width - left - 60) * (Math.log(clients) - first) / (last - first);
  const y = (share) => bottom - (bottom - top) * (Math.min(Math.max(share, least), most) - least) / (most - least);
  const grid = [0, step, most].flatMap((share) => gridLine(left, width, y(share), percent(share, 0)));
  const marks = points.flatMap((point, i) => {
    const at = x(point), kind = point.low > 0 ? "sure" : "unsure";
    const inside = point.estimate > least && point.estimate < most;
    const numbers = `${grouped(point.clients)} clients: ${percent(point.estimate, 2)}, 95% confidence interval ${percent(point.low, 2)} to ${percent(point.high, 2)}`;
    const bar = shape("line", { class: `bar ${kind}`, x1: at, x2: at, y1: y(point.low), y2: y(point.high) });
    const dot = inside ? [shape("circle", { class: kind, cx: at, cy: y(point.estimate), r: 5 })] : [];
    const label = i % every ? [] : [words(at, bottom + 20, grouped(point.clients), "small", "middle")];
    return [shape("g", { class: "mark", tabindex: 0 }, shape("title", {}, numbers), bar, ...dot), ...label];
  });
  const real = shape("line", { class: "truth", x1: left, x2: width, y1: y(truth), y2: y(truth) });
  const label = `Estimates from ${grouped(points[0].clients)} to ${grouped(points.at(-1).clients)} clients; the true share is ${percent(truth)}`;
  return frame(width, bottom + 44, label, words(0, 12, "estimated share of clients"), ...grid, real, ...marks,
    words((left + width) / 2, bottom + 38, "number of clients, on a logarithmic scale", "small", "middle"));
});

/** A round number that is at least `count`: 1, 2 or 5 times a power of ten. */
const roundUp = (count) => [1, 2, 5, 10].map((m) => m * 10 ** Math.floor(Math.log10(count))).find((n) => n >= count);

/** Draw the number of reports per day. days: {"2030-01-31": 12}; days without reports are left empty. */
export const dayBars = (days) => responsive((width) => {
  const DAY = 86_400_000, last = Math.max(...Object.keys(days).map(Date.parse)), shown = width === WIDE ? 30 : 14;
  const all = Array.from({ length: shown }, (_, i) => new Date(last - (shown - 1 - i) * DAY).toISOString().slice(0, 10));
  const most = roundUp(Math.max(...all.map((day) => days[day] ?? 0))), left = 12 + 7 * grouped(most).length;
  const top = 26, bottom = 96, size = (width - left) / shown, gap = size / 10;
  const height = (count) => count && Math.max(2, (bottom - top) * count / most);
  const bars = all.filter((day) => days[day]).map((day) => shape("rect", {
    class: "kept", x: left + all.indexOf(day) * size + gap, width: size - 2 * gap, y: bottom - height(days[day]), height: height(days[day]),
  }, shape("title", {}, `${day}: ${grouped(days[day])} reports`)));
  const grid = [0, most].flatMap((count) => gridLine(left, width, bottom - height(count), grouped(count)));
  const label = `Reports per day: ${Object.entries(days).sort().map(([day, count]) => `${day} ${count}`).join(", ")}`;
  return frame(width, bottom + 24, label, words(0, 12, `reports per day, last ${shown} days`), ...grid, ...bars,
    words(left, bottom + 18, all[0]), words(width, bottom + 18, all.at(-1), "small", "end"));
});
