// Sortable tables with a filter, and charts that name their numbers. Works without a network.
"use strict";
function enliven(root) {
  for (const table of root.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    const body = table.tBodies[0];
    heads.forEach((head, column) => {
      head.firstElementChild.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const value = (row) => {
          const cell = row.cells[column];
          return "key" in cell.dataset ? Number(cell.dataset.key) : cell.textContent;
        };
        const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
        const rows = [...body.rows].sort((a, b) => order(value(a), value(b)) * (up ? 1 : -1));
        body.replaceChildren(...rows);
      });
    });
    const label = document.createElement("label");
    label.className = "filter soft";
    label.textContent = "Show only rows that contain ";
    const input = document.createElement("input");
    input.type = "search";
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase();
      for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
    label.append(input);
    table.parentElement.before(label);
  }
  for (const chart of root.querySelectorAll("svg")) {
    const marks = chart.querySelectorAll(".mark");
    if (!marks.length) continue;
    const caption = document.createElement("p");
    caption.className = "said";
    caption.setAttribute("aria-live", "polite");
    caption.textContent = "Point at a mark, or move to it with the Tab key, to read its numbers.";
    chart.after(caption);
    for (const mark of marks) {
      const show = () => { caption.textContent = mark.querySelector("title").textContent; };
      mark.addEventListener("mouseenter", show);
      mark.addEventListener("focus", show);
    }
  }
}
enliven(document);
