// Reads the figures that the page carries and draws what it has places for.

function main() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const place = (id) => document.getElementById(id);
  data.curves.forEach((curve, index) => curveOf(curve, place(`curve-${index}`)));
  if (data.trials.length > 0) timelineOf(data, place("timeline"));
  if (data.percentiles.length > 0) percentilesOf(data.percentiles, place("percentiles-figure"));
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(place(button.dataset.copy).textContent);
      button.textContent = "copied";
    });
  }
  for (const table of document.querySelectorAll("table.sorts")) sortsOf(table);
  publishStatus();
}

// Canvases keep the colours that they were painted with, so a change of scheme repaints them; paper
// is light whatever the screen is, and narrower.
function repaint() {
  for (const chart of allCharts) chart.plot.redraw(false);
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);

window.addEventListener("beforeprint", () => {
  document.documentElement.dataset.theme = "paper";
  for (const details of document.querySelectorAll("details")) details.open = true;
  for (const chart of allCharts) {
    const width = Math.min(PAPER_WIDTH, chart.plot.width);
    chart.plot.setSize({ width, height: chart.description.height });
  }
});

window.addEventListener("afterprint", () => {
  delete document.documentElement.dataset.theme;
  for (const chart of allCharts) fitWidth(chart);
  repaint();
});

main();
