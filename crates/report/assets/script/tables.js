// Tables whose rows readers sort by a column, and filter by a text.

// Tables of fewer rows are read faster than filtered.
const FILTERED_ROWS = 8;

function sortsOf(table) {
  const rows = [...table.tBodies[0].rows];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const ascending = head.getAttribute("aria-sort") === "descending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      const sorted = [...rows].sort((one, other) =>
        compareCells(one.cells[column].textContent, other.cells[column].textContent),
      );
      if (!ascending) sorted.reverse();
      table.tBodies[0].append(...sorted);
    });
  });
  if (rows.length >= FILTERED_ROWS) filterOf(table, rows);
}

// Numbers by their size, with a text without one, such as a dash, below all of them; other texts by the alphabet.
function compareCells(one, other) {
  const [a, b] = [one, other].map((text) => parseFloat(text.replaceAll(",", "").replace("−", "-")));
  if (Number.isNaN(a) && Number.isNaN(b)) return one.localeCompare(other);
  if (Number.isNaN(a)) return -1;
  if (Number.isNaN(b)) return 1;
  return a - b;
}

function filterOf(table, rows) {
  const filter = document.createElement("input");
  filter.type = "search";
  filter.className = "filter";
  filter.placeholder = "rows with this text";
  filter.setAttribute("aria-label", `filter the table ${table.caption.querySelector("strong").textContent}`);
  filter.addEventListener("input", () => {
    const wanted = filter.value.trim().toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
  table.parentElement.before(filter);
}
