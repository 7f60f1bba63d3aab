// One chart: uPlot with the page's colours, a legend made of buttons, and the keyboard.
//
// A chart is described by
//   title, unit      what it shows
//   x                shared values along x, in ascending order
//   xKind            "time" (seconds), "percentile" (1 ÷ (1 − q)), "points" (an axis of a study),
//                    "names" (points at even distances, each with its name), "log" (a logarithmic
//                    axis) or "count" (of observations)
//   names            of the points along x: a day and a time
//   yKind            "linear", "log", "ratio" (around 1), "stack" (areas) or "bars" (a stack of bars)
//   series           [{label, colour, dashed, dots?, values, low?, high?, rounds?, published?}]
//   range            [from, to] of x when nothing is zoomed
//   group            charts with one zoom and one cursor (a Set), if any
//   height, drawUnder, drawOver, topSpace

const cssColour = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const seriesColour = (index) => cssColour(`c${index % 9}`);
const translucent = (colour, alpha) =>
  colour.startsWith("#")
    ? colour +
      Math.round(alpha * 255)
        .toString(16)
        .padStart(2, "0")
    : colour;

const FONT_FAMILY =
  '-apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Arial, sans-serif';
const AXIS_FONT = `12px ${FONT_FAMILY}`;
const Y_AXIS_WIDTH = 62;
// Seconds between ticks: whole seconds, minutes, hours.
const TIME_STEPS = [
  0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200,
];
const isStacked = (yKind) => yKind === "stack" || yKind === "bars";
const PAPER_WIDTH = 660;
const allCharts = new Set();

function makeChart(parent, description) {
  const chart = { description, shown: description.series.map(() => true) };
  const frame = chartFrame(chart);
  parent.append(frame.figure);
  Object.assign(chart, frame);
  chart.columns = columnsOf(description);
  chart.plot = new uPlot(optionsOf(chart), dataOf(chart), frame.canvas);
  bindKeyboard(chart);
  if (description.group) description.group.add(chart);
  chart.observer = new ResizeObserver(() => fitWidth(chart));
  chart.observer.observe(frame.canvas);
  allCharts.add(chart);
  chartPlanned(chart);
  return chart;
}

function destroyChart(chart) {
  chart.observer.disconnect();
  chart.plot.destroy();
  chart.figure.remove();
  chart.description.group?.delete(chart);
  allCharts.delete(chart);
  chartGone(chart);
}

function fitWidth(chart) {
  const width = Math.floor(chart.canvas.clientWidth);
  if (width > 0 && width !== chart.plot.width) {
    chart.plot.setSize({ width, height: chart.description.height });
  }
}

// The frame: caption, legend, and the box that uPlot draws into.

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function chartFrame(chart) {
  const { title, unit, series, yKind } = chart.description;
  const at = element("span", { class: "at" });
  const legend = element("ul", { class: "legend" });
  const outputs = series.map((each, index) => {
    const marker = isStacked(yKind) ? "area" : each.dashed ? "dashed" : each.dots ? "dot" : "";
    const output = element("output");
    const button = element(
      "button",
      { type: "button", "aria-pressed": "true", title: "show or hide" },
      element("i", { class: marker, style: `color: var(--c${each.colour % 9})` }),
      each.label,
      output,
    );
    button.addEventListener("click", () => toggleSeries(chart, index, button));
    legend.append(element("li", {}, button));
    return output;
  });
  const canvas = element("div", {
    class: "canvas",
    tabindex: "0",
    role: "img",
    "aria-label": spoken(chart.description),
  });
  const heading = element(
    "span",
    {},
    element("span", { class: "title" }, title),
    element("span", { class: "unit" }, unit ? `  ${unit}` : ""),
    at,
  );
  const caption = element("figcaption", {}, heading, legend);
  return { figure: element("figure", { class: "chart" }, caption, canvas), canvas, outputs, at };
}

// What a screen reader says instead of the picture: each line with its range.
function spoken({ title, unit, series }) {
  const lines = series.map(({ label, values }) => {
    const numbers = values.filter((value) => value !== null);
    if (numbers.length === 0) return `${label}: no data`;
    const low = numbers.reduce((a, b) => Math.min(a, b));
    const high = numbers.reduce((a, b) => Math.max(a, b));
    return `${label}: ${figure(low)} to ${figure(high)}`;
  });
  return `Chart: ${title}${unit ? `, ${unit}` : ""}. ${lines.join("; ")}.`;
}

// Series become columns of uPlot: one each, or three where an interval is drawn around it.

function columnsOf({ series, yKind }) {
  const columns = [];
  series.forEach((each, index) => {
    if (each.low) {
      columns.push({ index, values: each.high, edge: true });
      columns.push({ index, values: each.low, edge: true });
    }
    columns.push({ index, values: each.values, edge: false });
  });
  // The tallest sum of a stack is painted first, and the others over it.
  return isStacked(yKind) ? columns.reverse() : columns;
}

function dataOf(chart) {
  const { x, yKind } = chart.description;
  if (!isStacked(yKind)) return [x, ...chart.columns.map((column) => column.values)];
  const sums = new Array(x.length).fill(0);
  const stacked = new Map();
  for (const column of [...chart.columns].reverse()) {
    if (!chart.shown[column.index]) {
      stacked.set(column, column.values);
      continue;
    }
    stacked.set(
      column,
      column.values.map((value, i) => (value === null ? null : (sums[i] += value))),
    );
  }
  return [x, ...chart.columns.map((column) => stacked.get(column))];
}

function toggleSeries(chart, index, button) {
  chart.shown[index] = !chart.shown[index];
  button.setAttribute("aria-pressed", String(chart.shown[index]));
  chart.plot.batch(() => {
    chart.columns.forEach((column, position) => {
      if (column.index === index) chart.plot.setSeries(position + 1, { show: chart.shown[index] });
    });
    if (isStacked(chart.description.yKind)) {
      const { min, max } = chart.plot.scales.x;
      chart.plot.setData(dataOf(chart), false);
      chart.plot.setScale("x", { min, max });
    }
  });
}

// uPlot's options.

function optionsOf(chart) {
  const { description } = chart;
  const bands = [];
  chart.columns.forEach((column, position) => {
    if (
      column.edge &&
      chart.columns[position + 1]?.edge &&
      chart.columns[position + 1].index === column.index
    ) {
      bands.push({
        series: [position + 1, position + 2],
        fill: () => translucent(seriesColour(description.series[column.index].colour), 0.16),
      });
    }
  });
  return {
    width: Math.max(240, Math.floor(chart.canvas.clientWidth)),
    height: description.height,
    padding: [description.topSpace ?? 8, 26, 0, 0],
    legend: { show: false },
    cursor: cursorOf(chart),
    scales: scalesOf(description),
    axes: axesOf(description),
    series: [{}, ...chart.columns.map((column) => seriesOf(chart, column))],
    bands,
    hooks: {
      drawClear: [(plot) => description.drawUnder?.(plot)],
      draw: [
        (plot) => {
          drawRounds(chart, plot);
          description.drawOver?.(plot);
          chartDrawn(chart, plot.ctx.canvas);
        },
      ],
      setCursor: [() => showValues(chart)],
      setScale: [(plot, key) => key === "x" && description.zoomed?.(isZoomed(chart, plot))],
    },
  };
}

function cursorOf({ description }) {
  const cursor = {
    y: false,
    drag: { x: description.xKind === "time", y: false, dist: 6 },
    points: { size: 6 },
  };
  if (description.group) cursor.sync = { key: description.group.key, scales: ["x", null] };
  return cursor;
}

function scalesOf({ xKind, yKind, range, x, series, ceiling }) {
  const logX = xKind === "percentile" || xKind === "log" || (xKind === "points" && x[0] > 0);
  const whole = (plot, min, max) => {
    if (!range) return [min, max];
    const all = min <= x[0] && max >= x[x.length - 1];
    return all ? range : [Math.max(min, range[0]), Math.min(max, range[1])];
  };
  // What was published, and every round, must be seen too.
  const beside = series.flatMap(({ published, rounds }) => [published ?? [], rounds ?? []].flat(2));
  const marks = beside.filter((value) => value !== null && (yKind !== "log" || value > 0));
  const y = { distr: yKind === "log" ? 3 : 1 };
  y.range = (plot, dataMin, dataMax) => {
    if (dataMin === null || dataMax === null) return yKind === "log" ? [0.1, 10] : [0, 1];
    const [min, max] = [Math.min(dataMin, ...marks), Math.max(dataMax, ...marks)];
    if (yKind === "log") return [min * 0.8, max * 1.25];
    if (yKind === "ratio") {
      // Around 1, and not down to 0: differences of a few per cent are to be seen.
      const [low, high] = [Math.min(min, 1), Math.max(max, 1)];
      const pad = (high - low) * 0.08 || 0.01;
      return [low - pad, high + pad];
    }
    return [
      Math.min(min * 1.08, 0),
      ceiling ? Math.max(ceiling, max) : Math.max(max * 1.08, 0) || 1,
    ];
  };
  return { x: { time: false, distr: logX ? 3 : 1, range: whole }, y };
}

function axesOf({ xKind, xLabel, x, names, yKind }) {
  const lines = { stroke: () => cssColour("grid"), width: 1 };
  const common = { stroke: () => cssColour("muted"), font: AXIS_FONT, grid: lines, ticks: lines };
  const bottom = {
    ...common,
    label: xLabel,
    labelFont: AXIS_FONT,
    labelSize: xLabel ? 20 : 0,
    labelGap: 2,
    size: 30,
  };
  if (xKind === "time") bottom.incrs = TIME_STEPS;
  if (xKind === "time") bottom.values = (plot, splits) => splits.map((value) => seconds(value));
  if (xKind === "points") {
    bottom.filter = (plot, splits) => splits;
    bottom.splits = () => x;
    bottom.values = (plot, splits) =>
      spaced(plot, splits, 42).map((value) => (value === null ? "" : tick(value)));
  }
  if (xKind === "names") {
    bottom.size = 50;
    bottom.filter = (plot, splits) => splits;
    bottom.splits = () => x;
    // The time stands below the day.
    bottom.values = (plot, splits) =>
      spaced(plot, splits, 80).map((value, at) => (value === null ? "" : names[at].replace(" ", "\n")));
  }
  if (xKind === "percentile") {
    bottom.filter = (plot, splits) => splits;
    bottom.splits = () =>
      [1, 2, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7].filter((at) => at <= x[x.length - 1] * 1.01);
    bottom.values = (plot, splits) => splits.map(percentile);
  }
  const values = (plot, splits) => splits.map((v) => (v === null ? "" : tick(v)));
  const left = { ...common, size: Y_AXIS_WIDTH, values };
  if (xKind === "log") Object.assign(bottom, { values }, logAxis("x"));
  if (yKind === "log") Object.assign(left, logAxis("y"));
  return [bottom, left];
}

function logAxis(scale) {
  return {
    splits: (plot, axis, min, max) => logTicks(min, max).map(({ value }) => value),
    filter: (plot, splits) => {
      const { min, max } = plot.scales[scale];
      const ticks = logTicks(min, max);
      return splits.map((value, index) => (ticks[index]?.named ? value : null));
    },
  };
}

// 1 to 9 of each decade. Those get a label that have room for one: fewer, the more decades.
function logTicks(min, max) {
  const [first, last] = [Math.floor(Math.log10(min)), Math.ceil(Math.log10(max))];
  const span = Math.log10(max / min);
  const named = span > 2.5 ? [1] : span > 1.2 ? [1, 2, 5] : [1, 2, 3, 5, 7];
  const ticks = [];
  for (let power = first; power <= last; power++) {
    for (let digit = 1; digit <= 9; digit++) {
      const value = Number(`${digit}e${power}`);
      if (value < min || value > max) continue;
      ticks.push({ value, named: named.includes(digit) });
    }
  }
  return ticks;
}

// Leaves out the labels that would touch their neighbour.
function spaced(plot, splits, pixels) {
  let last = -Infinity;
  return splits.map((value) => {
    const at = plot.valToPos(value, "x");
    if (at - last < pixels) return null;
    last = at;
    return value;
  });
}

function seriesOf(chart, { index, edge }) {
  const { series, yKind, xKind } = chart.description;
  const { label, colour, dashed, dots } = series[index];
  if (edge) return { label, stroke: "transparent", width: 0, points: { show: false } };
  const options = {
    label,
    stroke: () => seriesColour(colour),
    width: 1.75,
    points: { show: false, size: 5, fill: () => seriesColour(colour), filter: alone },
  };
  if (xKind === "points" || xKind === "names") {
    options.points = { show: true, size: 6, fill: () => cssColour("paper") };
  }
  if (dashed) options.dash = [6, 4];
  if (dots) {
    options.paths = () => null;
    options.points = { show: true, size: 7, width: 0, fill: () => seriesColour(colour) };
  }
  if (yKind === "bars") {
    options.paths = uPlot.paths.bars({ size: [0.85, 60], align: 0 });
    options.points = { show: false };
  }
  if (isStacked(yKind)) {
    options.width = 0.5;
    options.fill = () => mixed(seriesColour(colour), cssColour("paper"), 0.72);
  }
  return options;
}

// Values without a neighbour, which no line joins.
function alone(plot, position) {
  const values = plot.data[position];
  const isValue = (at) => values[at] !== null && values[at] !== undefined;
  const isAlone = (at) => isValue(at) && !isValue(at - 1) && !isValue(at + 1);
  return [...values.keys()].filter(isAlone);
}

// Areas of a stack cover each other, so their paler tint must be opaque.
function mixed(colour, paper, share) {
  const part = (hex, at) => parseInt(hex.slice(at, at + 2), 16);
  const channel = (at) => Math.round(part(colour, at) * share + part(paper, at) * (1 - share));
  return `rgb(${channel(1)} ${channel(3)} ${channel(5)})`;
}

// The single rounds of a point as dots, and what was published as diamonds.
function drawRounds(chart, plot) {
  const { ctx } = plot;
  const ratio = uPlot.pxRatio;
  chart.description.series.forEach(({ rounds, published, colour }, index) => {
    if (!chart.shown[index]) return;
    const at = (x, y) => [plot.valToPos(x, "x", true), plot.valToPos(y, "y", true)];
    ctx.save();
    ctx.fillStyle = translucent(seriesColour(colour), 0.55);
    (rounds ?? []).forEach((values, position) => {
      for (const value of values) {
        const [left, top] = at(plot.data[0][position], value);
        ctx.beginPath();
        ctx.arc(left, top, 1.9 * ratio, 0, 2 * Math.PI);
        ctx.fill();
      }
    });
    ctx.fillStyle = cssColour("paper");
    ctx.strokeStyle = seriesColour(colour);
    ctx.lineWidth = 1.6 * ratio;
    (published ?? []).forEach((value, position) => {
      if (value === null) return;
      const [left, top] = at(plot.data[0][position], value);
      const size = 5 * ratio;
      ctx.beginPath();
      ctx.moveTo(left, top - size);
      ctx.lineTo(left + size, top);
      ctx.lineTo(left, top + size);
      ctx.lineTo(left - size, top);
      ctx.closePath();
      ctx.fill();
      ctx.stroke();
    });
    ctx.restore();
  });
}

// Cursor and keyboard.

function showValues(chart) {
  const { idx } = chart.plot.cursor;
  const { x, names, series, xKind } = chart.description;
  const inside = idx !== null && idx !== undefined && chart.plot.cursor.left >= 0;
  series.forEach(({ values }, index) => {
    chart.outputs[index].textContent = inside ? figure(values[idx]) : "";
  });
  const say = { time: seconds, percentile }[xKind] ?? tick;
  chart.at.textContent = inside ? `  at ${names?.[idx] ?? say(x[idx])}` : "";
}

function isZoomed({ description }, plot) {
  const { min, max } = plot.scales.x;
  const [from, to] = description.range ?? [min, max];
  return min > from + 1e-9 || max < to - 1e-9;
}

function setZoom(chart, min, max) {
  const charts = chart.description.group ?? [chart];
  for (const each of charts) each.plot.setScale("x", { min, max });
}

function bindKeyboard(chart) {
  let at = null;
  chart.canvas.addEventListener("keydown", (event) => {
    const { x, range } = chart.description;
    const last = x.length - 1;
    const steps = {
      ArrowLeft: -1,
      ArrowRight: 1,
      PageUp: -10,
      PageDown: 10,
      Home: -last,
      End: last,
    };
    if (event.key in steps) {
      at = Math.min(last, Math.max(0, (at ?? chart.plot.cursor.idx ?? 0) + steps[event.key]));
      for (const each of chart.description.group ?? [chart]) {
        each.plot.setCursor({ left: each.plot.valToPos(x[at], "x"), top: 10 });
      }
    } else if (range && (event.key === "+" || event.key === "-")) {
      const { min, max } = chart.plot.scales.x;
      const middle = x[at ?? chart.plot.cursor.idx ?? Math.floor(last / 2)];
      const half = ((max - min) / 2) * (event.key === "+" ? 0.5 : 2);
      setZoom(chart, Math.max(range[0], middle - half), Math.min(range[1], middle + half));
    } else if (range && event.key === "Escape") {
      setZoom(chart, range[0], range[1]);
    } else {
      return;
    }
    event.preventDefault();
  });
}
