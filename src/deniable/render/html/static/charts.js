// Charts drawn in the page. Text is only ever set as text.
const SVG = "http://www.w3.org/2000/svg", WIDTH = 740;

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

const frame = (height, label, ...children) =>
  shape("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label, class: "wide" }, ...children);
const words = (x, y, text, kind = "small", anchor = "start") =>
  shape("text", { x, y, class: kind, "text-anchor": anchor }, text);
export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)}%`;
export const grouped = (count) => count.toLocaleString("en-GB");

/** Draw rows of bits. rows: {name, bits, from}; a bit that differs from that of `from` is ringed. */
export function bitRows(rows) {
  const tall = 74, size = WIDTH / rows[0].bits.length;
  const body = rows.flatMap(({ name, bits, from }, r) => [
    words(0, r * tall + 22, name, ""),
    ...bits.map((bit, i) => shape("rect", {
      x: i * size + 2, y: r * tall + 32, width: size - 4, height: 28, rx: 3,
      class: `bit${bit ? " set" : ""}${from && from[i] !== bit ? " lie" : ""}`,
    })),
  ]);
  const label = rows.map(({ name, bits }) => `${name}: ${bits.map(Number).join("")}`).join("; ");
  return frame(rows.length * tall, label, ...body);
}

/** Draw in which share of reports each bit was 1. marks: {name: share}, drawn as lines across. */
export function bitBars(counts, reports, set, marks) {
  const bottom = 180, top = 16, size = (WIDTH - 130) / counts.length;
  const y = (share) => bottom - (bottom - top) * share;
  const lines = Object.entries(marks).flatMap(([name, share]) => [
    shape("line", { class: "threshold", x1: 0, x2: WIDTH - 126, y1: y(share), y2: y(share) }),
    words(WIDTH - 120, y(share) + 5, name),
  ]);
  const bars = counts.map((count, i) => shape("rect", {
    class: `column${set[i] ? " set" : ""}`, x: i * size + 2, width: size - 4,
    y: y(count / reports), height: bottom - y(count / reports),
  }));
  const label = counts.map((count) => percent(count / reports, 0)).join(", ");
  return frame(bottom + 12, `Share of ${grouped(reports)} reports in which each bit is 1: ${label}`, ...bars, ...lines);
}

/** Draw estimates for crowds of growing size. points: {clients, estimate, low, high} */
export function sharpening(points, truth) {
  const left = 90, right = WIDTH - 20, top = 16, bottom = 280;
  const step = [0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5].find((size) => size >= truth), most = 2 * step, least = -most / 3;
  const first = Math.log(points[0].clients), last = Math.log(points.at(-1).clients);
  const x = ({ clients }) => left + 20 + (right - left - 50) * (Math.log(clients) - first) / (last - first);
  const y = (share) => bottom - (bottom - top) * (Math.min(Math.max(share, least), most) - least) / (most - least);
  const grid = [0, step, most].flatMap((share) => [
    shape("line", { class: "grid", x1: left, x2: right, y1: y(share), y2: y(share) }),
    words(left - 8, y(share) + 5, percent(share, 0), "small", "end"),
  ]);
  const marks = points.flatMap((point, i) => {
    const at = x(point), kind = point.low > 0 ? "sure" : "unsure";
    const inside = point.estimate > least && point.estimate < most;
    const numbers = `${grouped(point.clients)} clients: ${percent(point.estimate, 2)}, 95% confidence interval ${percent(point.low, 2)} to ${percent(point.high, 2)}`;
    const bar = shape("line", { class: `bar ${kind}`, x1: at, x2: at, y1: y(point.low), y2: y(point.high) });
    const dot = inside ? [shape("circle", { class: kind, cx: at, cy: y(point.estimate), r: 6 })] : [];
    const label = i % 2 ? [] : [words(at, bottom + 30, grouped(point.clients), "small", "middle")];
    return [shape("g", { class: "mark", tabindex: 0 }, shape("title", {}, numbers), bar, ...dot), ...label];
  });
  const real = shape("line", { class: "truth", x1: left, x2: right, y1: y(truth), y2: y(truth) });
  const label = `Estimates from ${grouped(points[0].clients)} to ${grouped(points.at(-1).clients)} clients; the true share is ${percent(truth)}`;
  return frame(bottom + 40, label, ...grid, real, ...marks);
}

/** Draw the number of reports per day. days: {"2030-01-31": 12} */
export function dayBars(days) {
  const all = Object.entries(days).sort().slice(-30), bottom = 64;
  const most = Math.max(...all.map(([, count]) => count)), size = WIDTH / Math.max(all.length, 14);
  const bars = all.map(([day, count], i) => {
    const height = Math.max(2, (bottom - 6) * count / most);
    return shape("rect", { class: "kept", x: i * size + 2, width: size - 4, y: bottom - height, height },
      shape("title", {}, `${day}: ${grouped(count)} reports`));
  });
  const ends = [words(0, bottom + 24, all[0][0])];
  if (all.length > 7) ends.push(words(size * all.length, bottom + 24, all.at(-1)[0], "small", "end"));
  return frame(bottom + 34, `Reports per day: ${all.map(([day, count]) => `${day} ${count}`).join(", ")}`, ...bars, ...ends);
}
