// Curves over an axis of the study, and latency percentiles.

function curveOf({ title, unit, axis, x, names, lines, log, ratio, time, dots, marks }, host) {
  const [first, last] = [x[0], x[x.length - 1]];
  const scattered = last > first * 5 ? "log" : "count";
  const room = dots && last > first ? Math.min(1.15, (last / first) ** 0.05) : 1.15;
  const around = first > 0 && !time && !ratio ? [first / room, last * room] : undefined;
  makeChart(host, {
    title,
    unit,
    x,
    names,
    xKind: names ? "names" : time ? "time" : ratio ? "count" : dots ? scattered : "points",
    xLabel: axis,
    yKind: log ? "log" : ratio ? "ratio" : "linear",
    range: names ? [first - 0.5, last + 0.5] : around,
    series: lines,
    height: marks ? 320 : 260,
    topSpace: marks ? 40 : undefined,
    drawOver: marks && ((plot) => drawMarks(plot, { marks }, true)),
  });
}

function percentilesOf(groups, host) {
  const [where, of] = ["group", "of"].map((name) => host.querySelector(`select[name=${name}]`));
  let chart = null;

  function options(select, labels) {
    select.replaceChildren(...labels.map((label, index) => new Option(label, index)));
    select.closest("label").hidden = labels.length < 2;
  }

  function draw() {
    const distribution = groups[where.value].of[of.value];
    const { x, lines } = distribution;
    if (chart) destroyChart(chart);
    chart = makeChart(host.querySelector(".panels"), {
      title: `Latency, ${distribution.label}`,
      unit: "ms",
      x,
      xKind: "percentile",
      xLabel: "percentile: so many are not slower",
      yKind: "log",
      range: [1, x[x.length - 1]],
      series: lines,
      height: 340,
    });
  }

  where.addEventListener("change", () => {
    options(
      of,
      groups[where.value].of.map(({ label }) => label),
    );
    draw();
  });
  of.addEventListener("change", draw);
  options(
    where,
    groups.map(({ label }) => label),
  );
  options(
    of,
    groups[0].of.map(({ label }) => label),
  );
  draw();
}
