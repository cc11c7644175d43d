"use strict";
(async () => {
  const by = (id) => document.getElementById(id);
  const packed = Uint8Array.from(atob(by("data").textContent), (each) => each.charCodeAt(0));
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { size, src, rows } = await new Response(plain).json();
  const main = by("queries"), form = by("filters");
  let found = rows, page = 0;
  const card = (row) => {
    const made = document.createElement("template");
    made.innerHTML = row.html;
    // In a template nothing is loaded: cards name a picture by its place, as each address is here once.
    for (const picture of made.content.querySelectorAll("img")) picture.src = src[picture.getAttribute("src")];
    return made.content;
  };
  const last = () => Math.max(0, Math.ceil(found.length / size) - 1);
  const show = () => {
    page = Math.min(page, last());
    main.replaceChildren(...found.slice(page * size, (page + 1) * size).map(card));
    if (!found.length) main.append("Nothing fits these filters.");
    say();
  };
  const say = () => {
    const first = found.length ? page * size + 1 : 0;
    const [from, to, all] = [first, Math.min(found.length, (page + 1) * size), found.length].map((each) => each.toLocaleString("en"));
    by("where").textContent = from + " to " + to + " of " + all;
    by("back").disabled = page === 0;
    by("next").disabled = page === last();
  };
  const filter = () => {
    const chosen = Object.fromEntries(new FormData(form)), text = chosen.q.trim().toLowerCase();
    delete chosen.q;
    found = rows.filter((row) => row.text.includes(text) && Object.entries(chosen).every(([name, value]) =>
      !value || (name === "aspect" ? row.aspect.includes(value) : String(row[name]) === value)));
    page = 0;
    show();
  };
  const turn = (step) => { page = Math.min(last(), Math.max(0, page + step)); show(); window.scrollTo(0, 0); };
  const go = (step) => {
    const cards = [...main.querySelectorAll("article")];
    let at = cards.indexOf(document.activeElement.closest("article")) + step;
    if (at < 0 && step < 0 && !cards.includes(document.activeElement.closest("article"))) at = 0;
    if (at >= cards.length && page < last()) { turn(1); at = 0; }
    else if (at < 0 && page > 0) { turn(-1); at = main.querySelectorAll("article").length - 1; }
    focus(at);
  };
  const focus = (at) => {
    const card = main.querySelectorAll("article")[at];
    if (card) { card.focus({ preventScroll: true }); card.scrollIntoView({ block: "start" }); }
  };
  const jump = () => {
    if (!location.hash.startsWith("#q=")) return;
    let id = "";
    try { id = decodeURIComponent(location.hash.slice(3)); } catch { return; }
    const is = (row) => row.id === id;
    if (!rows.some(is)) return;
    if (!found.some(is)) { found = rows; form.reset(); }
    const at = found.findIndex(is);
    page = Math.floor(at / size);
    show();
    focus(at % size);
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", filter);
  by("back").addEventListener("click", () => turn(-1));
  by("next").addEventListener("click", () => turn(1));
  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "j") go(1);
    if (event.key === "k") go(-1);
  });
  window.addEventListener("hashchange", jump);
  form.hidden = by("pager").hidden = false;
  say();
  jump();
})();
