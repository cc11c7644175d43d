"use strict";
const work = JSON.parse(document.getElementById("data").textContent);
const key = ["cir-tasks", work.run, work.page, ...(work.times ? [`r${work.times}`] : [])].join("-");
const words = new RegExp(
  `(?=[\\p{L}\\p{N}_])[${work.without_blanks}]|(?:(?![${work.without_blanks}])[\\p{L}\\p{N}_])+`, "gu");
const part = (id) => document.getElementById(id);
const caption = part("caption");
let kept = { annotator: "", at: 0, answers: {} };
try {
  kept = Object.assign(kept, JSON.parse(localStorage.getItem(key) || "{}"));
} catch {
  part("done").textContent = "This browser keeps nothing: save your answers before you close the page.";
}
let at = Math.min(kept.at, work.tasks.length - 1);
let since = Date.now();

function mark() {
  const chosen = document.querySelector("input[name=mark]:checked");
  return chosen ? chosen.value : "";
}

function tooShort(text) {
  return new Set(text.toLowerCase().match(words) || []).size < work.least_words;
}

function own() {
  return work.tasks.map((task) => kept.answers[task.task]).filter(Boolean);
}

function hint() {
  const text = caption.value.trim();
  caption.classList.toggle("left-out", Boolean(text && mark()));
  part("hint").textContent = !text ? "" : mark()
    ? "The reason counts, and your sentence does not. Write on, or choose “It is good after all”, and the sentence counts."
    : tooShort(text) ? `Too short: write ${work.least_words} different words or more.` : "";
}

function keep() {
  const task = work.tasks[at].task;
  const before = kept.answers[task] || { seconds: 0 };
  // A page that was left open overnight is not a night of work.
  const seconds = Math.round((before.seconds + Math.min((Date.now() - since) / 1000, 600)) * 10) / 10;
  since = Date.now();
  const text = caption.value.trim();
  if (text || mark()) kept.answers[task] = { task, caption: text, mark: mark(), seconds };
  else delete kept.answers[task];
  kept.annotator = part("annotator").value.trim();
  kept.at = at;
  try {
    localStorage.setItem(key, JSON.stringify(kept));
  } catch {
    // The page says so at its top.
  }
  count();
  hint();
}

function count() {
  const answered = own().filter((answer) => answer.mark || !tooShort(answer.caption));
  part("done").textContent = `${answered.length} of ${work.tasks.length} pairs answered`;
}

function show(place) {
  at = Math.max(0, Math.min(place, work.tasks.length - 1));
  const task = work.tasks[at];
  const answer = kept.answers[task.task] || { caption: "", mark: "" };
  part("place").textContent = `Pair ${at + 1} of ${work.tasks.length}`;
  part("reference").src = task.reference;
  part("target").src = task.target;
  part("others").replaceChildren(...task.others.map((file, number) => {
    const image = new Image();
    image.src = file;
    image.alt = `Not this one: ${number + 1}`;
    return image;
  }));
  caption.value = answer.caption;
  for (const radio of document.querySelectorAll("input[name=mark]")) radio.checked = radio.value === answer.mark;
  since = Date.now();
  hint();
  caption.focus();
}

function go(step) {
  keep();
  show(at + step);
}

function done() {
  keep();
  const text = caption.value.trim();
  if (text && !mark() && tooShort(text)) caption.focus();
  else show(at + 1);
}

function quoted(text) {
  // A spreadsheet takes what begins like this for a formula.
  const safe = /^'*\s*[=+\-@＝＋－＠]/.test(text) ? `'${text}` : text;
  return `"${String(safe).replaceAll('"', '""')}"`;
}

function save(ending) {
  keep();
  const answers = own().map((answer) => ({ ...answer, caption: answer.mark ? "" : answer.caption }));
  const columns = ["task", "caption", "mark", "seconds"];
  const text = ending === "json"
    ? JSON.stringify({ format: work.format, run: work.run, page: work.page, annotator: kept.annotator, answers }, null, 1)
    : [["run", "annotator", ...columns].join(","), ...answers.map((answer) =>
        [work.run, kept.annotator, ...columns.map((name) => answer[name])].map((value) => quoted(String(value))).join(","))].join("\n") + "\n";
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: ending === "json" ? "application/json" : "text/csv" }));
  link.download = `answers-${work.page}.${ending}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

part("annotator").value = kept.annotator;
part("annotator").addEventListener("change", keep);
part("back").addEventListener("click", () => go(-1));
part("next").addEventListener("click", done);
part("clear").addEventListener("click", () => {
  for (const radio of document.querySelectorAll("input[name=mark]")) radio.checked = false;
  keep();
});
part("save-json").addEventListener("click", () => save("json"));
part("save-csv").addEventListener("click", () => save("csv"));
for (const radio of document.querySelectorAll("input[name=mark]")) radio.addEventListener("change", keep);
caption.addEventListener("input", () => {
  for (const radio of document.querySelectorAll("input[name=mark]")) radio.checked = false;
  keep();
});
caption.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    done();
  }
});
document.addEventListener("keydown", (event) => {
  if (!event.altKey) return;
  if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
    event.preventDefault();
    go(event.key === "ArrowLeft" ? -1 : 1);
  }
  const radio = document.querySelectorAll("input[name=mark]")[Number(event.key) - 1];
  if (/^[1-9]$/.test(event.key) && radio) {
    event.preventDefault();
    radio.checked = true;
    keep();
  }
});
if (own().length) part("instructions").open = false;
count();
show(at);
