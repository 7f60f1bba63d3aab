// Numbers as the tables on the page write them: three significant digits, thousands grouped.

function figure(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 99.95) return Math.round(value).toLocaleString("en-US");
  const digits = Math.max(0, 2 - Math.floor(Math.log10(size) + 1e-9));
  return value.toFixed(Math.min(digits, 6));
}

// A tick is round already; it only needs a short form.
function tick(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${+(value / 1e6).toFixed(2)} M`;
  if (size >= 1000) return Math.round(value).toLocaleString("en-US");
  return String(+value.toPrecision(6));
}

// 1 ÷ (1 − q) as a percentile: 100 is 99 %, 1000 is 99.9 %.
function percentile(inverse) {
  if (inverse <= 1) return "0 %";
  const nines = Math.max(0, Math.round(Math.log10(inverse) - 2));
  return `${+((1 - 1 / inverse) * 100).toFixed(nines + (inverse < 10 ? 0 : 1))} %`;
}

function seconds(value) {
  if (Math.abs(value) < 120) return `${+value.toFixed(1)} s`;
  const minutes = Math.trunc(value / 60);
  const rest = Math.round(Math.abs(value % 60));
  return rest === 0 ? `${minutes} min` : `${minutes} min ${rest} s`;
}
