
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const count = (n) => n.toLocaleString("en");
  const share = (part, whole) => (whole ? (part / whole).toFixed(4) : "–");

  const draw = (parent, kind, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", kind);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  };
  const WIDTH = 480, HEIGHT = 320, LEFT = 52, RIGHT = 14, TOP = 12, BOTTOM = 40;
  const across = (share) => LEFT + share * (WIDTH - LEFT - RIGHT);
  const up = (share) => HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);
  // Axes with ticks at [share of the axis, text].
  const axes = (svg, xs, ys, x, y) => {
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    for (const [place, text] of xs) {
      draw(svg, "line", { class: "grid", x1: across(place), x2: across(place), y1: up(0), y2: up(1) });
      draw(svg, "text", { x: across(place), y: up(0) + 16, "text-anchor": "middle" }, text);
    }
    for (const [place, text] of ys) {
      draw(svg, "line", { class: "grid", x1: across(0), x2: across(1), y1: up(place), y2: up(place) });
      draw(svg, "text", { x: LEFT - 6, y: up(place) + 4, "text-anchor": "end" }, text);
    }
    draw(svg, "text", { x: across(0.5), y: HEIGHT - 6, "text-anchor": "middle" }, x);
    draw(svg, "text", { transform: `translate(12 ${up(0.5)}) rotate(-90)`, "text-anchor": "middle" }, y);
  };
  const line = (svg, points) =>
    draw(svg, "path", { class: "line", d: points.map(([x, y], k) => `${k ? "L" : "M"}${across(x).toFixed(1)} ${up(y).toFixed(1)}`).join("") });
  const fifths = [0, 0.2, 0.4, 0.6, 0.8, 1].map((share) => [share, share.toFixed(1)]);

  // Precision, recall and the slider.
  const curve = data.curve;
  const svg = at("curve");
  axes(svg, fifths, fifths, "recall", "precision");
  const recall = curve.tp.map((tp) => (curve.positives ? tp / curve.positives : 0));
  const precision = curve.tp.map((tp, k) => tp / (tp + curve.fp[k]));
  line(svg, recall.map((x, k) => [x, precision[k]]));
  const dot = draw(svg, "circle", { class: "dot", r: 6 });
  const slider = at("threshold");
  const move = () => {
    const k = Number(slider.value), tp = curve.tp[k], fp = curve.fp[k];
    const fn = curve.positives - tp, tn = curve.rows - curve.positives - fp;
    at("at").textContent = curve.threshold[k].toPrecision(5);
    slider.setAttribute("aria-valuetext", `score ${curve.threshold[k].toPrecision(5)}`);
    for (const [id, value] of Object.entries({ tp, fp, fn, tn })) at(id).textContent = count(value);
    at("precision").textContent = share(tp, tp + fp);
    at("recall").textContent = share(tp, curve.positives);
    at("f1").textContent = share(2 * tp, 2 * tp + fp + fn);
    dot.setAttribute("cx", across(recall[k]));
    dot.setAttribute("cy", up(precision[k]));
  };
  slider.addEventListener("input", move);
  move();

  // The gap over iterations.
  if (data.convergence) {
    const gaps = data.convergence.gap.map((gap, k) => [k, gap]).filter(([, gap]) => gap > 0);
    const powers = gaps.map(([, gap]) => Math.log10(gap));
    const low = Math.floor(Math.min(0, ...powers)), high = Math.max(low + 1, Math.ceil(Math.max(...powers, low + 1)));
    const last = Math.max(1, data.convergence.gap.length - 1);
    const every = Math.max(1, Math.ceil((high - low) / 6));
    const ys = [];
    for (let power = low; power <= high; power += every) ys.push([(power - low) / (high - low), `1e${power}`]);
    const xs = [...new Set([0, 0.25, 0.5, 0.75, 1].map((share) => Math.round(share * last)))].map((k) => [k / last, count(k + 1)]);
    axes(at("convergence"), xs, ys, "iteration", data.convergence.label);
    line(at("convergence"), gaps.map(([k], j) => [k / last, (powers[j] - low) / (high - low)]));
  }

  // The table of queries.
  if (!data.queries) return;
  const PAGE = 25;
  const names = data.queries.names, columns = data.queries.columns;
  const body = document.querySelector("#queries tbody");
  const buttons = [...document.querySelectorAll("#queries thead button")];
  let shown = names.map((_, k) => k), page = 0, column = null, descending = false;
  const text = new Intl.Collator("en", { numeric: true });
  const order = (one, other) => {
    if (column === null) return one - other;
    if (column === "name") return text.compare(names[one], names[other]) * (descending ? -1 : 1) || one - other;
    const a = columns[column][one], b = columns[column][other];
    // What has no value comes last, whichever way.
    if (a === null || b === null) return (a === null) - (b === null) || one - other;
    return (descending ? b - a : a - b) || one - other;
  };
  const cell = (row, value, number) => {
    const element = document.createElement(number ? "td" : "th");
    if (!number) element.scope = "row";
    element.className = number ? "number" : "text";
    element.textContent = value;
    row.append(element);
  };
  const show = () => {
    const n_pages = Math.max(1, Math.ceil(shown.length / PAGE));
    page = Math.min(Math.max(page, 0), n_pages - 1);
    body.replaceChildren();
    for (const k of shown.slice(page * PAGE, (page + 1) * PAGE)) {
      const row = document.createElement("tr");
      cell(row, names[k], false);
      for (const [name, values] of Object.entries(columns)) {
        const value = values[k];
        const isCount = name === "rows" || name === "relevant";
        cell(row, value === null ? "–" : isCount ? count(value) : value.toFixed(4), true);
      }
      body.append(row);
    }
    at("found").textContent = `${count(shown.length)} of ${count(names.length)} queries`;
    at("page").textContent = `page ${count(page + 1)} of ${count(n_pages)}`;
    at("previous").disabled = page === 0;
    at("next").disabled = page === n_pages - 1;
  };
  const select = () => {
    const wanted = at("filter").value.toLowerCase();
    shown = names.map((_, k) => k).filter((k) => names[k].toLowerCase().includes(wanted)).sort(order);
    page = 0;
    show();
  };
  for (const button of buttons) {
    button.addEventListener("click", () => {
      // Metrics are read from the worst upwards; a second click turns the order round.
      descending = column === button.dataset.column ? !descending : false;
      column = button.dataset.column;
      for (const other of buttons) other.parentElement.removeAttribute("aria-sort");
      button.parentElement.setAttribute("aria-sort", descending ? "descending" : "ascending");
      select();
    });
  }
  at("filter").addEventListener("input", select);
  at("previous").addEventListener("click", () => { page -= 1; show(); });
  at("next").addEventListener("click", () => { page += 1; show(); });
  select();
})();
