
"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;

  // The theme: what the system asks for, until the button says otherwise. A browser may refuse to remember it.
  const root = document.documentElement;
  const button = find("theme");
  const remember = (value) => { try { localStorage.setItem("gradveil-theme", value); } catch { /* not remembered */ } };
  const recall = () => { try { return localStorage.getItem("gradveil-theme"); } catch { return null; } };
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const recalled = recall();
  if (recalled === "dark" || recalled === "light") root.dataset.theme = recalled;
  const label = () => button.setAttribute("aria-pressed", String(dark()));
  button.hidden = false;
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; remember(root.dataset.theme); label(); });
  label();

  // What is folded away belongs on paper too, except dozens of pictures and the widest table.
  addEventListener("beforeprint", () => document.querySelectorAll("details:not(.unprinted)").forEach((details) => { details.open = true; }));

  for (const film of document.querySelectorAll(".film")) {
    const { steps, addresses } = JSON.parse(film.querySelector("script").textContent);
    const slider = film.querySelector("input");
    const show = () => {
      const place = Number(slider.value);
      film.querySelector(".frame").src = addresses[place];
      film.querySelector("output").textContent = steps[place];
      slider.setAttribute("aria-valuetext", "step " + steps[place]);
    };
    slider.disabled = false;
    slider.addEventListener("input", show);
    const play = film.querySelector(".play");
    play.hidden = calm;
    let timer = null;
    const stop = () => { clearInterval(timer); timer = null; play.textContent = "Play"; };
    play.addEventListener("click", () => {
      if (timer !== null) { stop(); return; }
      if (Number(slider.value) === addresses.length - 1) slider.value = 0;
      show();
      play.textContent = "Stop";
      timer = setInterval(() => {
        slider.value = Number(slider.value) + 1;
        show();
        if (Number(slider.value) === addresses.length - 1) stop();
      }, 180);
    });
  }

  const data = find("data");
  if (!data) return;
  const { count, texts, columns } = JSON.parse(data.textContent);
  const PAGE = 100;
  const by = Object.fromEntries(columns.map((column) => [column.key, column]));
  const text = (column, row) => texts[column.values[row]];
  const every = Array.from({ length: count }, (_, row) => row);
  let order = every, shown = [], drawn = 0, sorted = null;

  const write = (column, row) => {
    const value = column.values[row];
    if (column.kind === "text") return texts[value];
    if (value === null || value === undefined) return "–";
    if (column.kind === "boolean") return value ? "yes" : "no";
    if (column.kind === "signed") return (value >= 0 ? "+" : "−") + Math.abs(value).toFixed(column.digits);
    if (column.kind === "number") return value.toFixed(column.digits);
    if (column.kind === "small") return value !== 0 && Math.abs(value) < 0.001 ? value.toExponential(1) : String(Number(value.toPrecision(3)));
    return String(value);
  };
  const isText = (column) => column.kind === "text";
  const head = document.querySelector(".data thead tr");
  const body = document.querySelector(".data tbody");

  const draw = (until) => {
    const part = document.createDocumentFragment();
    for (; drawn < Math.min(until, shown.length); drawn += 1) {
      const row = shown[drawn];
      const line = document.createElement("tr");
      if (text(by.status, row) !== "ok") line.className = "failed";
      for (const column of columns) {
        const cell = document.createElement("td");
        cell.textContent = write(column, row);
        if (isText(column)) { cell.className = column.key === "remarks" ? "text long" : "text"; if (cell.textContent.length > 24) cell.title = cell.textContent; }
        else cell.className = "figure" + (column.kind === "boolean" && column.values[row] ? " yes" : "");
        line.append(cell);
      }
      part.append(line);
    }
    body.append(part);
    find("more").hidden = drawn >= shown.length;
  };

  const compare = (column, turn) => (one, other) => {
    const a = column.values[one], b = column.values[other];
    // What has no value stands last, whichever way the table is sorted.
    if (a === null || b === null) return a === b ? one - other : a === null ? 1 : -1;
    const way = isText(column) ? texts[a].localeCompare(texts[b], "en", { numeric: true }) : Number(a) - Number(b);
    return turn * way || one - other;
  };

  const chosen = (name) => { const select = find("filter-" + name); return select ? select.value : ""; };
  const state = {
    "": () => true,
    reached: (row) => by.reached && by.reached.values[row] === true,
    hit: (row) => by.hit && by.hit.values[row] === true,
    identified: (row) => by.identified && by.identified.values[row] === true,
    failed: (row) => text(by.status, row) !== "ok",
  };
  const filter = () => {
    const wanted = find("search").value.trim().toLowerCase();
    const keep = state[chosen("state")];
    const named = ["phase", "arm", "attack"].filter((name) => chosen(name) !== "");
    const searched = columns.filter((column) => isText(column) || column.key === "image");
    shown = order.filter((row) => keep(row)
      && named.every((name) => text(by[name], row) === chosen(name))
      && (wanted === "" || searched.some((column) => write(column, row).toLowerCase().includes(wanted))));
    body.replaceChildren();
    drawn = 0;
    draw(PAGE);
    find("count").textContent = shown.length === count ? count + " rows" : shown.length + " of " + count + " rows";
  };

  for (const column of columns) {
    const cell = document.createElement("th");
    cell.scope = "col";
    if (!isText(column)) cell.className = "figure";
    const control = document.createElement("button");
    control.type = "button";
    control.textContent = column.heading;
    control.title = column.meaning;
    control.addEventListener("click", () => {
      const same = sorted === column;
      // Figures start with the largest, texts with the first letter.
      const first = isText(column) || column.key === "image" || column.key === "rank" || column.key === "p_value" ? "ascending" : "descending";
      const way = same ? (cell.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending") : first;
      head.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
      cell.setAttribute("aria-sort", way);
      sorted = column;
      order = [...every].sort(compare(column, way === "ascending" ? 1 : -1));
      filter();
    });
    cell.append(control);
    head.append(cell);
  }
  for (const name of ["phase", "arm", "attack"]) {
    const select = find("filter-" + name);
    if (!select) continue;
    for (const place of new Set(by[name].values)) select.append(new Option(texts[place].length > 60 ? texts[place].slice(0, 58) + "…" : texts[place], texts[place]));
  }
  const form = find("filters");
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  find("more").addEventListener("click", () => draw(drawn + PAGE));
  find("table").hidden = false;
  filter();
})();
