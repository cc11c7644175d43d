"use strict";
// What Gradio's part of the page lacks: a name that holds the words that are shown, one main part only, and to
// be seen when it is drawn, not while its parts come and move each other.
(() => {
  function patch() {
    for (const zone of document.querySelectorAll("#field-file button.upload-container")) {
      zone.setAttribute("aria-label", `Rank file, bundle or transcript: ${zone.innerText.replace(/\s+/g, " ").trim()}`);
    }
    if (document.querySelector("#field-file .upload-container") && document.querySelector("#field-board input")
      && document.querySelector("#send")) document.getElementById("drop").classList.add("drawn");
    for (const inner of document.querySelectorAll("gradio-app main")) inner.setAttribute("role", "none");
  }
  document.addEventListener("DOMContentLoaded", () => {
    const app = document.querySelector("gradio-app");
    if (!app) return;
    new MutationObserver(patch).observe(app, { childList: true, subtree: true });
    patch();
  });
})();
