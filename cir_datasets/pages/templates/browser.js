"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { size, runs, images, src, rows } = data;
  const by = (id) => document.getElementById(id);
  const KINDS = { "+": ["good", " ✓ target"], "*": ["right", " ✓ positive"], "-": ["bad", " ✗ hard neg."], " ": ["", ""] };
  const main = by("queries"), form = by("filters");
  let found = rows.map((_, at) => at), page = 0;
  const make = (tag, css, text) => {
    const made = document.createElement(tag);
    if (css) made.className = css;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const figure = (image, kind, label) => {
    const made = make("figure", kind), id = images[image];
    if (src[image]) {
      const picture = make("img");
      picture.src = data.prefix + src[image];
      picture.alt = label + ": " + id;
      picture.title = id;
      picture.loading = "lazy";
      made.append(picture);
    } else made.append(make("span", "id", id));
    made.append(make("figcaption", "", label));
    return made;
  };
  const card = (at) => {
    const [id, aspects, targets, positives, negatives, turns] = rows[at];
    const made = make("article"), head = make("h2"), link = make("a", "", id);
    made.tabIndex = -1;
    link.href = "#q=" + encodeURIComponent(id);
    head.append(make("span", "n", String(at + 1)), " ", link);
    for (const aspect of aspects) head.append(" ", make("span", "aspect", aspect));
    made.append(head);
    turns.forEach(([reference, caption, lists], number) => {
      const turn = make("div", "turn"), asked = make("div", "asked"), said = make("p", "caption");
      if (reference !== null) asked.append(figure(reference, "", "reference"));
      if (turns.length > 1) said.append(make("small", "", "turn " + (number + 1)));
      said.append(caption || "(no words)");
      asked.append(said);
      if (number === turns.length - 1) {
        for (const image of targets) asked.append(figure(image, "good", "✓ target"));
        for (const image of positives) asked.append(figure(image, "right", "✓ positive"));
        for (const image of negatives) asked.append(figure(image, "bad", "✗ hard negative"));
      }
      turn.append(asked);
      lists.forEach(([words, top, marks, ranked], run) => {
        const list = make("div", "list"), title = make("h3", "", runs[run] + " "), row = make("div", "row");
        title.append(make("small", "", words));
        top.forEach((image, place) => {
          const [kind, sign] = KINDS[marks[place]];
          const first = place < ranked ? place + 1 : image === reference ? "reference" : "not ranked";
          row.append(figure(image, kind, first + sign));
        });
        list.append(title, row);
        turn.append(list);
      });
      made.append(turn);
    });
    return made;
  };
  const last = () => Math.max(0, Math.ceil(found.length / size) - 1);
  const show = () => {
    page = Math.min(page, last());
    main.replaceChildren(...found.slice(page * size, (page + 1) * size).map(card));
    if (!found.length) main.append(make("p", "", "Nothing fits these filters."));
    say();
  };
  const say = () => {
    const first = found.length ? page * size + 1 : 0;
    const [from, to, all] = [first, Math.min(found.length, (page + 1) * size), found.length].map((each) => each.toLocaleString("en"));
    by("where").textContent = from + " to " + to + " of " + all;
    by("back").disabled = page === 0;
    by("next").disabled = page === last();
  };
  const value = (id) => (by(id) ? by(id).value : "");
  const filter = () => {
    const text = value("text").trim().toLowerCase(), aspect = value("aspect"), turns = value("turns");
    const chosen = form.querySelector("[name=outcome]:checked"), outcome = chosen ? chosen.value : "";
    found = [];
    rows.forEach((row, at) => {
      const words = () => [row[0], ...row[5].flatMap(([reference, caption]) => [caption, images[reference] || ""]),
        ...row[2].concat(row[3]).map((image) => images[image])];
      if ((!aspect || row[1].includes(aspect)) && (!turns || row[5].length === Number(turns)) &&
          (!outcome || row[6] === outcome) &&
          (!text || words().some((each) => each.toLowerCase().includes(text)))) found.push(at);
    });
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
    const next = main.querySelectorAll("article")[at];
    if (next) { next.focus({ preventScroll: true }); next.scrollIntoView({ block: "start" }); }
  };
  const jump = () => {
    if (!location.hash.startsWith("#q=")) return;
    let id = "";
    try { id = decodeURIComponent(location.hash.slice(3)); } catch { return; }
    let at = found.findIndex((place) => rows[place][0] === id);
    if (at < 0) {
      found = rows.map((_, place) => place);
      form.reset();
      at = found.findIndex((place) => rows[place][0] === id);
    }
    if (at < 0) return;
    page = Math.floor(at / size);
    show();
    const wanted = main.querySelectorAll("article")[at % size];
    wanted.focus({ preventScroll: true });
    wanted.scrollIntoView({ block: "start" });
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
