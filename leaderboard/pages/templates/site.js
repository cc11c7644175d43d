"use strict";
// Pages are whole without this file. It copies text, writes this site's address into commands, shows the
// row that the address names, and sends a form of choices without its empty fields: at once when a list is
// changed by a pointer. By the keyboard a list is gone through, and its button sends.
(() => {
  for (const one of document.querySelectorAll("[data-site]")) {
    one.textContent = new URL(one.dataset.site, location.href).href.replace(/\/$/, "");
  }
  // The entry that the address names stands in the table, which may begin below the first screen.
  const named = document.querySelector("tr.marked");
  if (named && !location.hash && window.top === window) named.scrollIntoView({ block: "center", behavior: "instant" });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const from = document.getElementById(button.dataset.copy);
    const text = from ? from.textContent : new URL(location.href).toString();
    navigator.clipboard.writeText(text).then(() => {
      const said = button.textContent;
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = said; }, 1500);
    });
  });
  // What is not chosen need not stand in the address. The fields come back: the page may be shown again.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "get" || event.defaultPrevented) return;
    const empty = [...form.elements].filter((one) => one.name && !one.disabled && one.value === "");
    for (const one of empty) one.disabled = true;
    setTimeout(() => { for (const one of empty) one.disabled = false; });
  });
  let pointed = false;
  document.addEventListener("pointerdown", () => { pointed = true; }, true);
  document.addEventListener("keydown", () => { pointed = false; }, true);
  document.addEventListener("change", (event) => {
    const form = event.target.matches("select") && event.target.closest("form[data-at-once]");
    if (form && pointed) form.requestSubmit();
  });
})();
