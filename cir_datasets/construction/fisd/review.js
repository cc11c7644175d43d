"use strict";
const columns = document.querySelector("main").dataset.columns.split(" ");
const articles = [...document.querySelectorAll("article")];
const seedOf = (article) => article.dataset.seed;
const key = (article) => `cir-review ${location.pathname} ${article.id} ${seedOf(article)}`;

function filledIn(article) {
  const found = { verdict: article.querySelector("input[type=radio]:checked")?.value ?? "" };
  for (const input of article.querySelectorAll("[data-field]")) found[input.dataset.field] = input.value.trim();
  return found;
}

function count() {
  let done = 0;
  for (const article of articles) {
    const decided = filledIn(article).verdict !== "";
    article.classList.toggle("decided", decided);
    done += decided;
  }
  document.getElementById("done").textContent = `${done} of ${articles.length} decided`;
}

function keep(article) {
  // A page that is closed by mistake loses nothing; some browsers keep nothing for files.
  try { localStorage.setItem(key(article), JSON.stringify(filledIn(article))); } catch { /* not kept */ }
  count();
}

function bringBack(article) {
  let kept = null;
  try { kept = JSON.parse(localStorage.getItem(key(article))); } catch { /* nothing kept */ }
  if (!kept) return;
  for (const radio of article.querySelectorAll("input[type=radio]")) radio.checked = radio.value === kept.verdict;
  for (const input of article.querySelectorAll("[data-field]")) input.value = kept[input.dataset.field] ?? "";
}

// A spreadsheet takes what begins like this for a formula.
const guarded = (text) => /^'*\s*[=+\-@＝＋－＠]/.test(text) ? `'${text}` : text;
const quoted = (text) => `"${text.replaceAll('"', '""')}"`;
const attribute = (article, name) => article.getAttribute(`data-${name.replaceAll("_", "-")}`) ?? "";

function csv() {
  const lines = [columns.join(",")];
  for (const article of articles) {
    const row = filledIn(article);
    lines.push(columns.map((name) => quoted(guarded(row[name] ?? attribute(article, name)))).join(","));
  }
  return lines.join("\r\n") + "\r\n";
}

for (const article of articles) {
  bringBack(article);
  article.addEventListener("input", () => keep(article));
}
document.getElementById("save").addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
  link.download = "review.csv";
  link.click();
});
document.getElementById("show").addEventListener("change", (event) => {
  for (const article of articles) {
    article.hidden = event.target.value === "open" && filledIn(article).verdict !== "";
  }
});
count();
