// What a test reads: how many charts there are, how many have drawn, and what went wrong. Errors
// are also left to the console, where a person looks for them.

const status = { planned: new Set(), drawn: new Set(), errors: [] };

function publishStatus() {
  const root = document.documentElement;
  root.dataset.charts = `${status.drawn.size}/${status.planned.size}`;
  if (status.errors.length > 0) root.dataset.errors = status.errors.join(" | ");
}

window.addEventListener("error", (event) => {
  status.errors.push(`${event.message} (line ${event.lineno})`);
  publishStatus();
});

function chartPlanned(chart) {
  status.planned.add(chart);
  publishStatus();
}

// A chart counts as drawn when its canvas holds pixels, not when the library says so.
function chartDrawn(chart, canvas) {
  if (status.drawn.has(chart)) return;
  const { width, height } = canvas;
  if (width === 0 || height === 0) return;
  const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
  if (!pixels.some((channel) => channel !== 0)) return;
  status.drawn.add(chart);
  publishStatus();
}

function chartGone(chart) {
  status.planned.delete(chart);
  status.drawn.delete(chart);
}
