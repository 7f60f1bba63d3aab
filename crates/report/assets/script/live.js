// Follows a run: asks twice a second how it stands, and replaces a frame whose page is a new one.

(() => {
"use strict";

const EACH_MS = 500;
const base = location.pathname.replace(/\/?$/, "/");
const line = document.querySelector("#line span");
const shown = { page: 0, now: 0 };
const loading = { page: false, now: false };

// The new page is laid out behind the old one and takes its place, at the same height, when it is
// complete.
function replace(name, version) {
  if (version === shown[name] || loading[name]) return;
  const place = document.getElementById(name);
  place.hidden = version === 0;
  if (version === 0) {
    place.replaceChildren();
    shown[name] = 0;
    return;
  }
  loading[name] = true;
  const old = place.querySelector("iframe.shown");
  const frame = document.createElement("iframe");
  frame.title = name === "now" ? "what is under way" : "the results so far";
  frame.addEventListener("load", () => {
    const from = old?.contentWindow;
    if (from) frame.contentWindow.scrollTo(0, from.scrollY);
    frame.className = "shown";
    old?.remove();
    shown[name] = version;
    loading[name] = false;
    // What the page says of its charts, for tests of this one.
    const { charts } = frame.contentDocument.documentElement.dataset;
    document.documentElement.dataset[name] = `${version}: ${charts}`;
  });
  frame.src = `${base}${name}?${version}`;
  place.append(frame);
}

async function look() {
  let state;
  try {
    state = await (await fetch(`${base}state`, { cache: "no-store" })).json();
  } catch {
    line.textContent = "pgrig no longer answers; this is what it last said.";
    document.documentElement.dataset.state = "gone";
    return;
  }
  line.textContent = state.line;
  replace("now", state.now);
  replace("page", state.page);
  const isShown = shown.page === state.page && shown.now === state.now;
  document.documentElement.dataset.state = state.over && isShown ? "over" : "running";
  if (!(state.over && isShown)) setTimeout(look, EACH_MS);
}

look();
})();
