"use strict";
// What Gradio's part of the page lacks: a name that holds the words that are shown, one main part only, to be
// seen when it is drawn, files refused in words before they are sent, another file in the place of a chosen
// one, one check a click, and a focus that stays where the reader is.
(() => {
  const CHOSEN = "#field-file .file-preview", ZONE = "#field-file button.upload-container";
  const part = (selector) => document.querySelector(selector);
  let was = false, checking = 0, goes = "";

  function say(words) {
    const box = part("#drop-said");
    box.replaceChildren();
    if (!words) return;
    const message = document.createElement("p");
    message.className = "notice bad";
    message.textContent = words;
    box.append(message);
  }

  // Why files are not taken, in words; empty where they are.
  function trouble(files) {
    if (files.length > 1) return `${files.length} files were dropped, and one is taken at a time. Fix: drop one; cir convert joins the files of a suite to a bundle.`;
    const [file] = files, most = Number(part("#drop").dataset.most);
    if (file.size > most) return `${file.name} has ${(file.size / 2 ** 20).toFixed(1)} MB, and at most ${(most / 2 ** 20).toFixed(0)} MB are taken. Fix: compress it (.json.gz); lists longer than the board uses can be cut.`;
    if (file.name.startsWith(".")) return `The name ${file.name} begins with a dot. Fix: give the file another name.`;
    return "";
  }

  function refused(event, files) {
    const words = files.length ? trouble(files) : "";
    say(words);
    if (!words) return false;
    event.preventDefault();
    event.stopImmediatePropagation();
    return true;
  }

  // Puts a file where another one is chosen: that one goes first.
  async function exchange(file) {
    part('#field-file button[aria-label="Clear"]').click();
    for (let waited = 0; waited < 50 && !part("#field-file input[type=file]"); waited += 1) {
      await new Promise((done) => { setTimeout(done, 20); });
    }
    const input = part("#field-file input[type=file]"), held = new DataTransfer();
    if (!input) return;
    held.items.add(file);
    input.files = held.files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  }

  // Where what had the focus is gone, the focus goes on to what comes next.
  function follow() {
    if (!goes || document.activeElement !== document.body || !part(goes)) return;
    part(goes).focus();
    goes = "";
  }

  function patch() {
    for (const zone of document.querySelectorAll(ZONE)) {
      zone.setAttribute("aria-label", `Rank file, bundle or transcript: ${zone.innerText.replace(/\s+/g, " ").trim()}`);
    }
    if (part(ZONE) && part("#field-board input") && part("#send")) part("#drop").classList.add("drawn");
    for (const inner of document.querySelectorAll("gradio-app main")) inner.setAttribute("role", "none");
    // Uploads are not handed out again: what looks like a link is the size of the file.
    for (const link of document.querySelectorAll("#field-file a[href]")) link.removeAttribute("href");
    const is = Boolean(part(CHOSEN));
    if (is !== was) {
      was = is;
      goes = is ? "#send" : ZONE;
    }
    follow();
    if (part("#outcome .outcome")) checking = 0;
  }

  // A reader who has gone on is left there.
  document.addEventListener("focusin", (event) => { if (!event.target.closest("#field-file")) goes = ""; });
  document.addEventListener("focusout", () => { setTimeout(follow); });
  document.addEventListener("change", (event) => {
    if (event.target.matches("#field-file input[type=file]") && refused(event, [...event.target.files])) event.target.value = "";
  }, true);
  document.addEventListener("dragover", (event) => { if (event.target.closest("#drop")) event.preventDefault(); });
  document.addEventListener("drop", (event) => {
    if (!event.target.closest("#drop")) return;
    const files = [...(event.dataTransfer?.files || [])];
    if (refused(event, files) || !files.length) return;
    const zone = part(ZONE);
    if (zone?.contains(event.target)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (part(CHOSEN)) exchange(files[0]);
  }, true);
  document.addEventListener("click", (event) => {
    if (!event.target.closest("#send")) return;
    // The second click of a double click, and clicks while a file is taken in.
    if (Date.now() - checking < 10_000) {
      event.preventDefault();
      event.stopImmediatePropagation();
    } else {
      part("#outcome .outcome")?.remove();
      checking = Date.now();
    }
  }, true);
  // The list of boards is closed by the key that leaves it, and the focus with it.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Tab" || event.shiftKey || !event.target.closest("#field-board")) return;
    setTimeout(() => { if (document.activeElement === document.body) part("#send")?.focus(); });
  }, true);
  document.addEventListener("DOMContentLoaded", () => {
    const app = part("gradio-app");
    if (!app) return;
    new MutationObserver(patch).observe(app, { childList: true, subtree: true });
    patch();
  });
})();
