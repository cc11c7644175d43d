"use strict";
// What Gradio's part of the page lacks: a name that holds the words that are shown, and one main part only.
(() => {
  function patch() {
    for (const zone of document.querySelectorAll("#field-file button.upload-container")) {
      zone.setAttribute("aria-label", `Rank file, bundle or transcript: ${zone.innerText.replace(/\s+/g, " ").trim()}`);
    }
    for (const inner of document.querySelectorAll("gradio-app main")) inner.setAttribute("role", "none");
  }
  document.addEventListener("DOMContentLoaded", () => {
    const app = document.querySelector("gradio-app");
    if (!app) return;
    new MutationObserver(patch).observe(app, { childList: true, subtree: true });
    patch();
  });
})();
