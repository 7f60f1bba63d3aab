// The list of records: filtered, sorted, two chosen, and read again when something has changed.

const EACH_MS = 1500;
const base = location.pathname.replace(/\/?$/, "/");
const place = (id) => document.getElementById(id);
const list = place("records");
const rows = () => [...list.tBodies[0].rows];
const sorted = { column: -1, ascending: false };
let chosen = [];
let version = "";

function filter() {
  const words = place("text").value.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const state = place("state").value;
  let count = 0;
  for (const row of rows()) {
    const text = row.textContent.toLowerCase();
    const isInState = state === "" || row.dataset.state === state;
    row.hidden = !(isInState && words.every((word) => text.includes(word)));
    if (!row.hidden) count += 1;
  }
  place("shown").textContent = `${count} of ${rows().length}`;
}

function sort() {
  const { column, ascending } = sorted;
  if (column < 0) return;
  const text = (row) => row.cells[column].textContent;
  const ordered = rows().sort((one, other) => text(one).localeCompare(text(other)));
  if (!ascending) ordered.reverse();
  list.tBodies[0].append(...ordered);
}

// The page is in the order of the server, the newest first, until a reader sorts it.
function sortsBy(head, column) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "sort";
  button.textContent = head.textContent;
  head.replaceChildren(button);
  button.addEventListener("click", () => {
    sorted.ascending = sorted.column === column ? !sorted.ascending : true;
    sorted.column = column;
    for (const other of list.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", sorted.ascending ? "ascending" : "descending");
    sort();
  });
}

// Of three, the one that was chosen first goes.
function choose(number, isChosen) {
  chosen = chosen.filter((one) => one !== number);
  if (isChosen) chosen = [...chosen, number].slice(-2);
  showChoice();
}

function showChoice() {
  for (const row of rows()) {
    const box = row.querySelector("input");
    if (box) box.checked = chosen.includes(row.dataset.number);
  }
  const link = place("beside");
  const isComplete = chosen.length === 2;
  link.setAttribute("aria-disabled", String(!isComplete));
  const left = ["Choose two to lay side by side", "Choose one more", "Lay the two side by side"];
  link.textContent = left[chosen.length];
  if (!isComplete) return link.removeAttribute("href");
  // The earlier one stands first.
  const began = (number) => list.querySelector(`tr[data-number="${number}"] .began`)?.textContent ?? "";
  const [before, after] = [...chosen].sort((one, other) => began(one).localeCompare(began(other)));
  link.href = `beside/${before}/${after}/`;
}

function take(page) {
  for (const id of ["news", "state"]) {
    const value = place(id).value;
    place(id).replaceChildren(...page.getElementById(id).childNodes);
    if (value !== undefined) place(id).value = value;
  }
  document.querySelector("h1").textContent = page.querySelector("h1").textContent;
  list.tBodies[0].replaceChildren(...page.getElementById("records").tBodies[0].rows);
  const isEmpty = rows().length === 0;
  list.hidden = isEmpty;
  place("chooser").hidden = isEmpty;
  sort();
  filter();
  showChoice();
}

async function look() {
  try {
    const now = await (await fetch(`${base}version`, { cache: "no-store" })).text();
    if (now !== version) {
      const text = await (await fetch(base, { cache: "no-store" })).text();
      take(new DOMParser().parseFromString(text, "text/html"));
      version = now;
    }
  } catch {
    const gone = document.createElement("p");
    gone.className = "note";
    gone.textContent = "pgrig view has ended; this is what it last said.";
    place("news").replaceChildren(gone);
    document.documentElement.dataset.state = "gone";
    return;
  }
  document.documentElement.dataset.state = "shown";
  setTimeout(look, document.hidden ? 10 * EACH_MS : EACH_MS);
}

[...list.tHead.rows[0].cells].forEach((head, column) => {
  if (column > 0) sortsBy(head, column);
});
list.addEventListener("change", (event) => {
  choose(event.target.closest("tr").dataset.number, event.target.checked);
});
place("text").addEventListener("input", filter);
place("state").addEventListener("input", filter);
filter();
showChoice();
look();
