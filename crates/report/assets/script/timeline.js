// Time: the panels of one trial, on one axis, with what happened drawn over them.

function timelineOf(data, host) {
  const { trials } = data;
  const state = { group: new Set(), charts: [], trial: null };
  state.group.key = "time";
  const panels = host.querySelector(".panels");
  const reset = host.querySelector(".reset");
  const buttons = [...document.querySelectorAll("button[data-trial]")];
  const pickers = pickersOf(host, trials, (trial) => show(trial));

  function show(trial) {
    if (trial === state.trial) return;
    state.trial = trial;
    state.charts.forEach(destroyChart);
    const { range } = gridOf(trial);
    reset.disabled = true;
    state.charts = trial.panels.map((panel, position) =>
      makeChart(panels, {
        title: panel.title,
        unit: panel.unit,
        series: panel.series,
        x: gridOf({ ...trial, ...cellsOf(panel, trial) }).x,
        range,
        xKind: "time",
        xLabel:
          position === trial.panels.length - 1 ? "since all clients were connected" : undefined,
        yKind: panel.style,
        ceiling: panel.unit.startsWith("%") ? 100 : undefined,
        group: state.group,
        height: heightOf(trial, position),
        topSpace: position === 0 && trial.marks.length > 0 ? 40 : 8,
        drawUnder: (plot) => drawWarmup(plot, trial),
        drawOver: (plot) => drawMarks(plot, trial, position === 0),
        zoomed: (zoomed) => {
          reset.disabled = !zoomed;
        },
      }),
    );
    pickers.set(trial);
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(trials[button.dataset.trial] === trial));
    }
    listMarks(host.querySelector(".moments tbody"), trial);
  }

  for (const button of buttons) {
    button.addEventListener("click", () => {
      show(trials[button.dataset.trial]);
      host.scrollIntoView({ block: "nearest" });
    });
  }
  reset.addEventListener("click", () => {
    const [first] = state.charts;
    if (first) setZoom(first, ...first.description.range);
  });
  show(trials.find((trial) => trial.first) ?? trials[0]);
}

function gridOf({ from, step, n }) {
  const x = Array.from({ length: n }, (_, cell) => from + step * (cell + 0.5));
  return { x, range: [from, from + step * n] };
}

// Panels of what is read once a second have wider cells than others.
function cellsOf({ step, series }, trial) {
  return { step: step || trial.step, n: series[0].values.length };
}

function heightOf(trial, position) {
  if (position === 0) return 210 + (trial.marks.length > 0 ? 32 : 0);
  return position === 1 ? 180 : 130;
}

// Three lists that narrow each other down: what ran, on which variant, in which round.

function pickersOf(host, trials, show) {
  const keys = ["scenario", "variant", "round"];
  const selects = keys.map((key) => host.querySelector(`select[name=${key}]`));
  const unique = (values) => [...new Set(values)];
  const fill = (select, values, chosen) => {
    select.replaceChildren(
      ...values.map((value) => new Option(value, value, false, value === chosen)),
    );
    select.closest("label").hidden = values.length < 2;
  };

  function set(trial) {
    keys.forEach((key, depth) => {
      const matching = trials.filter((each) =>
        keys.slice(0, depth).every((k) => each[k] === trial[k]),
      );
      fill(selects[depth], unique(matching.map((each) => String(each[key]))), String(trial[key]));
    });
  }

  selects.forEach((select, depth) => {
    select.addEventListener("change", () => {
      const wanted = selects.map((each) => each.value);
      const agrees = (trial) => (key, i) => String(trial[key]) === wanted[i];
      const fixed = trials.filter((trial) => keys.slice(0, depth + 1).every(agrees(trial)));
      const score = (trial) => keys.filter(agrees(trial)).length;
      show(fixed.reduce((best, trial) => (score(trial) > score(best) ? trial : best), fixed[0]));
    });
  });
  return { set };
}

// Marks.

const MARK_NAMES = {
  phase: "phase",
  action: "action",
  checkpoint: "checkpoint",
  autovacuum: "autovacuum",
  exposure: "exposure",
  replication: "replication",
  horizon: "oldest xmin held",
  server_error: "server error",
};

function drawWarmup(plot, { window: open }) {
  if (!open) return;
  const { ctx, bbox } = plot;
  const at = (second) =>
    Math.min(bbox.left + bbox.width, Math.max(bbox.left, plot.valToPos(second, "x", true)));
  ctx.save();
  ctx.fillStyle = cssColour("warmup");
  ctx.fillRect(bbox.left, bbox.top, at(open[0]) - bbox.left, bbox.height);
  ctx.fillRect(at(open[1]), bbox.top, bbox.left + bbox.width - at(open[1]), bbox.height);
  ctx.restore();
}

function drawMarks(plot, { marks }, named) {
  const { ctx, bbox } = plot;
  const ratio = uPlot.pxRatio;
  const right = bbox.left + bbox.width;
  const rows = [-Infinity, -Infinity];
  ctx.save();
  ctx.font = `${11 * ratio}px ${FONT_FAMILY}`;
  for (const mark of marks) {
    const from = plot.valToPos(mark.at, "x", true);
    const to = plot.valToPos(mark.at + mark.length, "x", true);
    if (to < bbox.left || from > right) continue;
    const colour = cssColour(`mark-${mark.kind}`);
    const left = Math.max(from, bbox.left);
    if (to - from > 2 * ratio) {
      ctx.fillStyle = translucent(colour, 0.13);
      ctx.fillRect(left, bbox.top, Math.min(to, right) - left, bbox.height);
    }
    ctx.strokeStyle = colour;
    ctx.lineWidth = (mark.kind === "action" ? 2 : 1.25) * ratio;
    ctx.setLineDash(mark.kind === "phase" ? [3 * ratio, 3 * ratio] : []);
    const top = named ? bbox.top - 6 * ratio : bbox.top;
    if (from >= bbox.left) {
      ctx.beginPath();
      ctx.moveTo(from, top);
      ctx.lineTo(from, bbox.top + bbox.height);
      ctx.stroke();
    }
    if (named) nameMark(ctx, mark, left, right, bbox, rows, colour, ratio);
  }
  ctx.restore();
}

// A name stands above its mark in the first row that has room; where there is none it is left to
// the list below the charts.
function nameMark(ctx, mark, left, right, bbox, rows, colour, ratio) {
  const short = mark.text.length > 28 ? `${mark.text.slice(0, 27)}…` : mark.text;
  const width = ctx.measureText(short).width;
  const start = Math.min(left, right - width);
  const row = rows.findIndex((end) => start > end + 8 * ratio);
  if (row < 0) return;
  rows[row] = start + width;
  ctx.fillStyle = colour;
  ctx.textAlign = "left";
  ctx.textBaseline = "bottom";
  ctx.fillText(short, start, bbox.top - (8 + row * 14) * ratio);
}

function listMarks(body, trial) {
  if (!body) return;
  const rows = trial.marks.map((mark) => {
    const swatch = element("span", { class: "swatch", style: `color: var(--mark-${mark.kind})` });
    const what = element("td", {}, swatch, MARK_NAMES[mark.kind] ?? mark.kind);
    const length = mark.length > 0 ? seconds(mark.length) : "";
    return element(
      "tr",
      {},
      element("th", { scope: "row", class: "num" }, seconds(mark.at)),
      what,
      element("td", {}, mark.node),
      element("td", {}, mark.text),
      element("td", { class: "num" }, length),
    );
  });
  if (trial.more > 0) {
    rows.push(
      element(
        "tr",
        {},
        element("td", { colspan: "5", class: "dim" }, `and ${trial.more} more in the record`),
      ),
    );
  }
  if (rows.length === 0)
    rows.push(element("tr", {}, element("td", { colspan: "5", class: "dim" }, "none")));
  body.replaceChildren(...rows);
}
