"use strict";
// The form works without this. With it a file can be dropped, its board is said before it is sent, its way is
// seen, and a refusal stands in the page.
(() => {
  const part = (id) => document.getElementById(id);
  const form = part("send-form"), input = part("field-file"), board = part("field-board"), zone = part("drop");
  const HEAD_BYTES = 65536;
  let looks = 0, sending = false;

  // Words of this script, or HTML of the server, in the place of what was said before.
  function tell(place, words, kind) {
    place.replaceChildren();
    if (!words) return;
    const message = document.createElement("p");
    message.className = `notice ${kind}`;
    message.textContent = words;
    place.append(message);
  }
  function show(place, html, selector) {
    const there = new DOMParser().parseFromString(html, "text/html").querySelectorAll(selector);
    place.replaceChildren(...there);
    return there[0];
  }

  // Why files are not taken, in words; empty where they are.
  function trouble(files) {
    if (files.length > 1) return `${files.length} files were dropped, and one is taken at a time. Fix: drop one; cir convert joins the files of a suite to a bundle.`;
    const [file] = files, most = Number(form.dataset.most), megabytes = (size) => size / 2 ** 20;
    if (file && file.size > most) return `${file.name} has ${megabytes(file.size).toFixed(1)} MB, and at most ${megabytes(most).toFixed(0)} MB are taken. Fix: compress it (.json.gz); lists longer than the board uses can be cut.`;
    return "";
  }

  async function look() {
    const [file] = input.files, mine = looks += 1;
    part("outcome").replaceChildren();
    if (!file) {
      tell(part("named"), "");
      return;
    }
    // Parquet says at its end what it answers.
    const end = file.name.endsWith(".parquet") && file.size > HEAD_BYTES ? HEAD_BYTES / 2 : 0;
    const looked_at = new Blob([file.slice(0, HEAD_BYTES - end), file.slice(file.size - end)]);
    const asked = new URLSearchParams({ board: board.value, name: file.name });
    try {
      const answer = await fetch(`${form.dataset.look}?${asked}`, { method: "POST", body: looked_at });
      const html = answer.ok ? await answer.text() : "";
      // A file or board that was chosen meanwhile has its own answer.
      if (mine === looks) show(part("named"), html, "body > p");
    } catch { /* whether the server is there is said when the file is sent */ }
  }

  function choose(files) {
    const words = trouble(files);
    if (words) {
      input.value = "";
      look();
      tell(part("named"), words, "bad");
      return;
    }
    if (files !== input.files) {
      const held = new DataTransfer();
      held.items.add(files[0]);
      input.files = held.files;
    }
    look();
  }

  // The end of a request, whatever it was.
  function ended(words) {
    sending = false;
    part("sent").hidden = true;
    part("state").textContent = words;
  }

  function send() {
    const request = new XMLHttpRequest();
    request.open("POST", form.action);
    request.setRequestHeader("Accept", "text/html");
    request.setRequestHeader("X-Requested-With", "XMLHttpRequest");
    request.upload.addEventListener("progress", (event) => { if (event.lengthComputable) part("sent").value = event.loaded / event.total; });
    request.upload.addEventListener("load", () => { part("state").textContent = "Sent. It is being stored…"; });
    request.addEventListener("load", () => {
      if (request.status === 201) {
        ended("Received and stored. Opening its page…");
        location.assign(JSON.parse(request.responseText).page);
        return;
      }
      ended("");
      // A refusal says again what was wrong with the board.
      looks += 1;
      tell(part("named"), "");
      const outcome = show(part("outcome"), request.responseText, ".outcome");
      if (outcome) outcome.focus();
      else tell(part("outcome"), `The server answers ${request.status}. Fix: try again in a moment.`, "bad");
    });
    request.addEventListener("error", () => {
      ended("");
      tell(part("outcome"), "The server does not answer. Fix: try again in a moment.", "bad");
    });
    sending = true;
    part("outcome").replaceChildren();
    part("sent").value = 0;
    part("sent").hidden = false;
    part("state").textContent = "Sending…";
    request.send(new FormData(form));
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!sending) send();
  });
  input.addEventListener("change", () => choose(input.files));
  board.addEventListener("change", look);
  part("named").addEventListener("click", (event) => {
    if (event.target.id !== "as-named") return;
    board.value = "";
    board.focus();
    look();
  });
  for (const kind of ["dragenter", "dragover"]) zone.addEventListener(kind, (event) => { event.preventDefault(); zone.classList.add("over"); });
  for (const kind of ["dragleave", "drop"]) zone.addEventListener(kind, () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files.length) choose(event.dataTransfer.files);
  });
  // A file may be chosen already: a browser keeps it when the page is loaded again.
  if (input.files.length) choose(input.files);
})();
