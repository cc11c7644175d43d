"use strict";
const work = JSON.parse(document.getElementById("data").textContent);
const form = work.form;
const key = work.memory || `cir-review ${location.pathname}`;
const words = new RegExp(
  `(?=[\\p{L}\\p{N}_])[${work.without_blanks}]|(?:(?![${work.without_blanks}])[\\p{L}\\p{N}_])+`, "gu");
const part = (id) => document.getElementById(id);
let kept = { annotator: "", at: 0, answers: {} };
let keeps = true;
try {
  kept = Object.assign(kept, JSON.parse(localStorage.getItem(key) || "{}"));
} catch {
  keeps = false;
}
let items = work.items;
let at = Math.max(0, Math.min(kept.at, items.length - 1));
let since = Date.now();

function make(tag, values = {}, ...parts) {
  const { aria = {}, data = {}, ...rest } = values;
  const node = Object.assign(document.createElement(tag), rest);
  for (const [name, value] of Object.entries(aria)) node.setAttribute(`aria-${name}`, value);
  Object.assign(node.dataset, data);
  node.append(...parts);
  return node;
}

// Names with blanks stand in quotation marks.
const namesIn = (text) => [...(text || "").matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted || bare);
const questionsOf = (item) => form.questions.filter((question) => item.asked.includes(question.name));
const picksOne = (question) => question.kind === "sort" && question.max === 1;
const columnsOf = (question) => question.kind === "sort" ? Object.keys(question.choices) : [question.name];

function answerOf(item) {
  const answer = kept.answers[item.id];
  return answer && (answer.version || "") === item.version ? answer : { seconds: 0, ...item.brings };
}

const isTouched = (item) => form.columns.some((column) => answerOf(item)[column]);
const isVoid = (question, answer) => Object.entries(question.unless).some(([other, values]) =>
  answer[other] && (!values.length || values.includes(answer[other])));
const tooShort = (question, text) =>
  question.kind === "text" && new Set((text || "").toLowerCase().match(words) || []).size < question.min_words;
const wrongNumber = (question, text) => {
  if (!text || !["number", "stars"].includes(question.kind)) return "";
  const low = question.kind === "stars" ? 1 : question.min, high = question.max || (question.kind === "stars" ? 5 : Infinity);
  return /^-?\d{1,15}$/.test(text) && low <= Number(text) && Number(text) <= high ? ""
    : `Write a whole number from ${low} ${high === Infinity ? "on" : `to ${high}`}.`;
};
const faultOf = (question, text) => wrongNumber(question, text)
  || (tooShort(question, text) ? `Too short: write ${question.min_words} different words or more.` : "");

function isDone(item) {
  const answer = answerOf(item);
  return questionsOf(item).filter((question) => form.done.includes(question.name)).every((question) =>
    isVoid(question, answer) || (columnsOf(question).some((column) => answer[column]) && !faultOf(question, answer[question.name])))
    && !questionsOf(item).some((question) => !isVoid(question, answer) && wrongNumber(question, answer[question.name]));
}

function shown(file, alt) {
  if (!/^(data|blob|file):/.test(file)) file = file.split("/").map(encodeURIComponent).join("/");
  return /\.(mp4|webm|mov|ogv)$/i.test(file)
    ? make("video", { src: file, controls: true, preload: "metadata", aria: { label: alt } })
    : make("img", { src: file, alt, loading: "lazy" });
}

function figures(item, field) {
  return item.pictures[field.field].map((one, number, all) => make("figure", { className: field.frame },
    shown(one.picture, `${field.label || field.field}${all.length > 1 ? ` ${number + 1}` : ""}${one.text ? `: ${one.text}` : ""}`),
    make("figcaption", {}, ...(field.below ? [] : [make("b", {}, one.label || field.label)]), one.text)));
}

function pictures(item, below) {
  const found = form.pictures.filter((field) => field.below === below && item.pictures[field.field].length);
  const large = found.filter((field) => !field.small).flatMap((field) => figures(item, field));
  return [
    ...(large.length ? [make("div", { className: "pictures" }, ...large)] : []),
    ...found.filter((field) => field.small).flatMap((field) => [
      ...(below ? [make("h3", {}, field.label)] : []), make("div", { className: "small" }, ...figures(item, field))]),
  ];
}

function texts(item, below) {
  return form.texts.filter((field) => field.below === below && item.texts[field.field]).map((field) =>
    make("p", { className: "text" }, ...(field.label ? [make("b", {}, `${field.label}: `)] : []), item.texts[field.field]));
}

function radios(question, id, choices, answer) {
  return make("fieldset", { className: "question", data: { of: question.name } }, make("legend", {}, question.label),
    ...choices.map(([value, label], number) => make("label", {}, make("input", {
      type: "radio", name: `${question.name}-${id}`, value, checked: answer[question.name] === value, data: { question: question.name },
    }), ` ${form.page_size === 1 && question.kind === "choice" ? `${number + 1}. ` : ""}${label}`)),
    make("button", { type: "button", className: "clear", data: { clears: question.name } }, question.clear));
}

function menu(question, value, label, options) {
  return make("select", { data: { question: question.name }, aria: label ? { label } : {} },
    ...options.map(([option, words]) => make("option", { value: option, selected: option === value }, words)));
}

function control(question, item, number) {
  const answer = answerOf(item), id = `${question.name}-${number}`, value = answer[question.name] || "";
  const labelled = (node) => make("div", { className: "question", data: { of: question.name } },
    make("label", { htmlFor: id }, question.label), " ", Object.assign(node, { id }),
    make("p", { className: "hint", id: `${id}-hint` }));
  if (question.kind === "stars") {
    const stars = Array.from({ length: question.max || 5 }, (_, place) => [`${place + 1}`, `${place + 1} ★`]);
    return radios(question, number, stars, answer);
  }
  if (question.kind === "choice" && !question.menu) return radios(question, number, Object.entries(question.choices), answer);
  if (question.kind === "choice") return labelled(menu(question, value, "", [["", "choose"], ...Object.entries(question.choices)]));
  if (question.kind === "sort") {
    const places = Object.entries(question.choices);
    const of = (name) => places.find(([column]) => namesIn(answer[column]).includes(name))?.[0] || "";
    return make("fieldset", { className: `question ${picksOne(question) ? "pictures" : "small"}`, data: { of: question.name } }, make("legend", {}, question.label),
      ...item.pictures[question.pictures].map((one) => make("figure", { data: { picture: one.name } },
        shown(one.picture, one.text || one.name),
        make("figcaption", {}, menu(question, of(one.name), `what ${one.name} is`, [...places, ["", question.rest]]), one.text || one.name))));
  }
  const values = { value, data: { question: question.name }, aria: { describedby: `${id}-hint` } };
  if (question.kind === "number") {
    const limits = { min: question.min, ...(question.max ? { max: question.max } : {}) };
    return labelled(make("input", { type: "number", ...limits, placeholder: item.texts[question.placeholder] || "", ...values }));
  }
  const most = question.max ? { maxLength: question.max } : {};
  return labelled(make("textarea", { rows: question.lines, autocomplete: "off", placeholder: item.texts[question.placeholder] || "", ...most, ...values }));
}

function read(article, item) {
  const answer = {};
  for (const question of questionsOf(item)) {
    const nodes = [...article.querySelectorAll(`[data-question="${question.name}"]`)];
    if (question.kind === "sort") {
      for (const column of columnsOf(question)) answer[column] = nodes.filter((node) => node.value === column)
        .map((node) => node.closest("figure").dataset.picture).map((name) => name.includes(" ") ? `"${name}"` : name).join(" ");
    } else {
      answer[question.name] = (nodes[0].type === "radio" ? nodes.find((node) => node.checked)?.value : nodes[0].value.trim()) || "";
    }
  }
  return answer;
}

function paint(article, item) {
  const answer = answerOf(item);
  article.classList.toggle("done", isDone(item));
  for (const question of questionsOf(item)) {
    const box = article.querySelector(`[data-of="${question.name}"]`), hint = box.querySelector(".hint"), text = answer[question.name];
    const left = Boolean(text && isVoid(question, answer));
    box.querySelector("textarea, input")?.classList.toggle("void", left);
    hint?.classList.toggle("wrong", Boolean(text));
    if (hint) hint.textContent = left ? "Another answer counts, and this one does not. Write on, and it counts."
      : text && faultOf(question, text) ? faultOf(question, text)
      : question.min_words > 1 && !text ? `${question.min_words} different words or more.` : "";
    if (question.kind === "sort") for (const figure of box.querySelectorAll("figure")) {
      figure.className = ["good", "bad"][columnsOf(question).indexOf(figure.querySelector("select").value)] || "";
    }
  }
}

function store() {
  kept.annotator = part("annotator").value.trim();
  kept.at = at;
  try {
    localStorage.setItem(key, JSON.stringify(kept));
  } catch {
    keeps = false;
  }
  const done = work.items.filter(isDone).length;
  part("done").textContent = `${done} of ${work.items.length} ${form.item[1]} answered`
    + (keeps ? "" : ". This browser keeps nothing: save your answers before you close the page.");
}

function keep(article) {
  const item = items[Number(article.dataset.at)], before = answerOf(item);
  // A page that was left open overnight is not a night of work.
  const seconds = Math.round(((before.seconds || 0) + Math.min((Date.now() - since) / 1000, 600)) * 10) / 10;
  since = Date.now();
  const answer = read(article, item);
  if (form.columns.some((column) => (answer[column] || "") !== item.brings[column])) {
    kept.answers[item.id] = { [form.id]: item.id, ...(item.version ? { version: item.version } : {}), ...answer, seconds };
  } else delete kept.answers[item.id];
  paint(article, item);
  store();
}

function show(place, focus = true) {
  at = Math.max(0, Math.min(place, items.length - 1));
  const first = Math.floor(at / form.page_size) * form.page_size;
  const page = items.slice(first, first + form.page_size);
  if (part("items").dataset.first !== String(first) || !part("items").children.length) {
    part("items").dataset.first = first;
    part("items").replaceChildren(...page.map((item, number) => {
      const article = make("article", { data: { at: first + number, item: item.id } },
        make("h2", {}, form.page_size === 1 ? `${form.item[0][0].toUpperCase()}${form.item[0].slice(1)} ${first + number + 1} of ${items.length}` : item.id),
        ...texts(item, false), ...pictures(item, false), ...questionsOf(item).map((question) => control(question, item, first + number)),
        ...pictures(item, true), ...texts(item, true));
      paint(article, item);
      return article;
    }));
    if (!page.length) part("items").append(make("p", {}, "Nothing is left."));
  }
  const last = Math.min(first + form.page_size, items.length);
  part("place").textContent = form.page_size === 1 || !items.length ? "" : `${first + 1} to ${last} of ${items.length}`;
  since = Date.now();
  store();
  if (focus) current()?.querySelector("textarea, input, select")?.focus({ preventScroll: focus === "still" });
}

const current = () => document.querySelector(`article[data-at="${at}"]`);

function go(step) {
  if (current()) keep(current());
  show(at + step);
}

function goOn() {
  const article = current();
  if (!article) return;
  keep(article);
  const wrong = questionsOf(items[at]).find((question) => {
    const answer = answerOf(items[at]);
    return answer[question.name] && !isVoid(question, answer) && faultOf(question, answer[question.name]);
  });
  if (wrong) article.querySelector(`[data-question="${wrong.name}"]`).focus();
  else show(at + 1);
}

function turn(step) {
  if (form.page_size === 1) return step > 0 ? goOn() : go(step);
  show((Math.floor(at / form.page_size) + step) * form.page_size);
  scrollTo(0, part("items").offsetTop);
}

function quoted(text) {
  // A spreadsheet takes what begins like this for a formula.
  const safe = /^'*\s*[=+\-@＝＋－＠]/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}

function handedIn(item) {
  const answer = answerOf(item), found = { [form.id]: item.id, ...item.keys };
  for (const question of form.questions) for (const column of columnsOf(question)) {
    found[column] = item.asked.includes(question.name) && !isVoid(question, answer) ? answer[column] || "" : "";
  }
  return { ...found, seconds: answer.seconds || 0 };
}

function save(ending) {
  if (current()) keep(current());
  const answers = work.items.filter(isTouched).map(handedIn), common = { run: work.run, annotator: kept.annotator };
  const columns = [form.id, ...form.keys, ...form.columns, "seconds", "run", "annotator"];
  const lines = [columns, ...answers.map((answer) => columns.map((name) => String({ ...answer, ...common }[name])))];
  const text = ending === "json" ? JSON.stringify({ format: 1, form: form.name, page: work.page, ...common, answers }, null, 1)
    : lines.map((line) => line.map(quoted).join(",") + "\r\n").join("");
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: ending === "json" ? "application/json" : "text/csv" })),
    download: `answers-${work.page}.${ending}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function choose(article, name, value) {
  for (const radio of article.querySelectorAll(`input[data-question="${name}"]`)) radio.checked = radio.value === value;
}

part("items").addEventListener("focusin", (event) => {
  const article = event.target.closest("article");
  if (article) at = Number(article.dataset.at);
});
part("items").addEventListener("input", (event) => {
  const article = event.target.closest("article"), question = form.questions.find((one) => one.name === event.target.dataset.question);
  at = Number(article.dataset.at);
  // Of columns for one picture the last choice counts.
  if (picksOne(question) && event.target.value === columnsOf(question)[0]) {
    for (const node of article.querySelectorAll(`select[data-question="${question.name}"]`)) {
      if (node !== event.target && node.value === event.target.value) node.value = "";
    }
  }
  for (const [other, values] of Object.entries(question.unless)) {
    const answer = read(article, items[at])[other];
    if (answer && (!values.length || values.includes(answer))) choose(article, other, "");
  }
  for (const [other, value] of Object.entries(question.sets)) if (!read(article, items[at])[other]) choose(article, other, value);
  keep(article);
});
part("items").addEventListener("click", (event) => {
  const menu = event.target.matches("fieldset.pictures img") && event.target.closest("figure").querySelector("select");
  if (menu) {
    menu.selectedIndex = 0;
    menu.dispatchEvent(new Event("input", { bubbles: true }));
  }
  if (!event.target.dataset.clears) return;
  const article = event.target.closest("article");
  choose(article, event.target.dataset.clears, "");
  keep(article);
});
part("items").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || !event.target.matches("textarea, input:not([type=radio])")) return;
  event.preventDefault();
  goOn();
});
document.addEventListener("keydown", (event) => {
  if (!event.altKey) return;
  if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
    event.preventDefault();
    go(event.key === "ArrowLeft" ? -1 : 1);
  }
  const box = document.activeElement.closest("article fieldset") || current();
  const first = box?.querySelector("input[type=radio]");
  const radio = first && [...box.querySelectorAll(`input[name="${first.name}"]`)][Number(event.key) - 1];
  if (/^[1-9]$/.test(event.key) && radio) {
    event.preventDefault();
    radio.checked = true;
    if (box.matches("fieldset")) radio.focus();
    keep(radio.closest("article"));
  }
});
part("show").addEventListener("change", (event) => {
  items = event.target.value ? work.items.filter((item) => !isDone(item)) : work.items;
  part("items").replaceChildren();
  show(0, false);
});
part("annotator").value = kept.annotator;
part("annotator").addEventListener("change", store);
part("back").addEventListener("click", () => turn(-1));
part("next").addEventListener("click", () => turn(1));
part("save-json").addEventListener("click", () => save("json"));
part("save-csv").addEventListener("click", () => save("csv"));
if (work.items.some((item) => kept.answers[item.id])) part("instructions").open = false;
show(at, form.page_size === 1 && "still");
